# SPDX-License-Identifier: Apache-2.0

"""Notifications in Redis streams.

Start with ``sender`` or ``consumer``.
It never deletes an entry before its listeners are done.
"""
