# SPDX-License-Identifier: Apache-2.0

"""Values that rooms give to each other, of nodes and of the cluster.

Start with ``round`` for an agent, ``cluster`` for the queue.
It never imports another room.
"""
