# SPDX-License-Identifier: Apache-2.0

"""Revisions of the database schema; a killed upgrade can be repeated.

Start with ``changes``: statements that can run again. Upgrades never run by
themselves: operators run ``nova-fairness-cluster``.
"""
