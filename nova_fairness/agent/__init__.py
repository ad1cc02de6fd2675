# SPDX-License-Identifier: Apache-2.0

"""The agent of a compute node: it measures VMs and sets their weights.

Start with ``round.cycle``, which runs one round. ``assembly`` creates the
agent's objects. The agent never plans for other nodes; the cluster service
does.
"""
