# SPDX-License-Identifier: Apache-2.0

"""Planner of moves that empty, consolidate or balance hosts.

Start with ``planner``; ``rules`` contains the limits of a plan. This package
never reads shares or budgets.
"""
