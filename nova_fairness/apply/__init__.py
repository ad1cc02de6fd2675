# SPDX-License-Identifier: Apache-2.0

"""Kernel values of VMs: read, written, and restored at the end.

Start with ``applier``, which writes the values of one round. The package never
computes a value; ``decide`` does.
"""
