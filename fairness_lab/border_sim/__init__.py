# SPDX-License-Identifier: Apache-2.0

"""Simulator of hosts between a batch system and the queue of a cloud.

Start with ``engine``: events of both sides, and the product's planner.
It never speaks to a real batch system.
"""
