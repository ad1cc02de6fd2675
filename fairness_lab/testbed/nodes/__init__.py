# SPDX-License-Identifier: Apache-2.0

"""Nodes: namespaces, control groups, disks, networks and agents.

Start with ``node``: all parts of one.
It never leaves anything behind after a run.
"""
