# SPDX-License-Identifier: Apache-2.0

"""Planner of the numbers of hosts that the cloud and the batch system should
have.

Start with ``planner``; ``demand`` computes the needs of both sides. This
package never opens, closes or drains a host.
"""
