# SPDX-License-Identifier: Apache-2.0

"""The relay between nova-api and conductor: builds wait, other messages pass.

Start with ``jobs``.
It never opens the database of the queue: it calls the cluster service.
"""
