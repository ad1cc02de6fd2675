# SPDX-License-Identifier: Apache-2.0

"""State for people and programs: metrics, notifications, status, record.

Start with ``metrics`` or ``notices``.
It never changes anything.
"""
