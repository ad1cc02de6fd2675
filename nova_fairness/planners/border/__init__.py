# SPDX-License-Identifier: Apache-2.0

"""How many hosts the cloud and the batch system should have.

Start with ``planner``; ``demand`` says what both sides need.
It never opens, closes or drains a host.
"""
