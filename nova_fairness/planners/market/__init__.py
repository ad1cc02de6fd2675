# SPDX-License-Identifier: Apache-2.0

"""Moves by which servers get resources in proportion to their owners' rates.

Start with ``planner``.
This package never charges an account: ``cluster.usage`` does.
"""
