# SPDX-License-Identifier: Apache-2.0

"""Batch systems: hosts and jobs are read, hosts are drained and resumed.

Start with ``system``: the contract; ``slurm`` is its first implementation.
This package never decides which host moves.
"""
