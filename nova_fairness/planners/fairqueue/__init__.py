# SPDX-License-Identifier: Apache-2.0

"""The queue's planner: entitlements, orders, reservations and backfill.

Start with ``planner``; ``order`` is the interface of plugins.
It never chooses victims: ``preemption`` does.
"""
