# SPDX-License-Identifier: Apache-2.0

"""Migration plans: proposals of live migrations, their approval, execution and
measured outcome.

Start with ``plan_controller``: it controls the states of a plan. This package
never evicts servers and never works within the cycle of the queue.
"""
