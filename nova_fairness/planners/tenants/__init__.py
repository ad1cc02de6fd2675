# SPDX-License-Identifier: Apache-2.0

"""Moves that give users with less than their share of CPU time more of it.

Start with ``planner``.
It never weights running servers: agents do.
"""
