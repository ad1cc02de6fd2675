# SPDX-License-Identifier: Apache-2.0

"""Plans of live migrations: proposed, approved, executed and measured.

Start with ``plan_controller``: the life of a plan. This package never evicts a
server and never works within the cycle of the queue.
"""
