# SPDX-License-Identifier: Apache-2.0

"""The agent of a node: it measures VMs and weights what they compete for.

Start with ``round.cycle``; ``assembly`` puts the agent together.
It never plans for other nodes: the cluster service does.
"""
