# SPDX-License-Identifier: Apache-2.0

"""Notifications in Redis streams.

Start with ``sender`` or ``consumer``. An entry is deleted only after all its
listeners have processed it.
"""
