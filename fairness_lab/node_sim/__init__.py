# SPDX-License-Identifier: Apache-2.0

"""Simulator of nodes: agents, kernels and loads in steps of a round.

Start with ``engine``, then ``kernel``: what a kernel makes of weights.
It never measures a real VM: ``testbed`` does.
"""
