# SPDX-License-Identifier: Apache-2.0

"""Output for people and programs: metrics, notifications, status and the
record of rounds.

Start with ``metrics`` or ``notices``. The package changes nothing in the
system.
"""
