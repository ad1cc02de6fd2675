# SPDX-License-Identifier: Apache-2.0

"""Moves by which servers get what their owners spend for.

Start with ``planner``.
It never charges an account: ``cluster.usage`` does.
"""
