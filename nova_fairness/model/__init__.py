# SPDX-License-Identifier: Apache-2.0

"""Values that packages exchange, about nodes and about the cluster.

Start with ``round`` for an agent, ``cluster`` for the queue. The package
imports no other package.
"""
