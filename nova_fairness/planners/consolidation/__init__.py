# SPDX-License-Identifier: Apache-2.0

"""Moves that empty, consolidate or balance hosts.

Start with ``planner``; ``rules`` has the bounds of a plan.
This package never reads shares or budgets.
"""
