# SPDX-License-Identifier: Apache-2.0

"""Planner of moves by which servers get resources in proportion to the
spending rates of their owners.

Start with ``planner``. This package never charges an account:
``cluster.usage`` does.
"""
