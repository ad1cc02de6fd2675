# SPDX-License-Identifier: Apache-2.0

"""Planners of the cluster: pure functions from a snapshot of the cloud to a
plan.

Start with ``fairqueue.planner``: which request starts next, and where.
Planners never read a clock, a file or another service.
"""
