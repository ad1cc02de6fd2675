# SPDX-License-Identifier: Apache-2.0

"""Planner of the queue: entitlements, orders, reservations and backfill.

Start with ``planner``; ``order`` is the interface of plugins. It never chooses
victims: ``preemption`` does.
"""
