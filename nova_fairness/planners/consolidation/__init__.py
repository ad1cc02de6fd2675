# SPDX-License-Identifier: Apache-2.0

"""Moves that empty, consolidate or balance hosts.

Start with ``planner``; ``rules`` bounds what a plan may cost.
It never looks at shares or at what users spend.
"""
