# SPDX-License-Identifier: Apache-2.0

"""Plans of live migrations: proposed, approved, executed and judged.

Start with ``plan_controller``: the life of a plan.
It never evicts a server and never works within the cycle of the queue.
"""
