# SPDX-License-Identifier: Apache-2.0

"""Planner of moves that give more CPU time to owners with less than their
share.

Start with ``planner``. This package never sets weights of running servers:
agents do.
"""
