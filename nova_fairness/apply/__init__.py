# SPDX-License-Identifier: Apache-2.0

"""Kernel values of VMs: read, written, and restored at the end.

Start with ``applier``: one round of writes.
It never decides a value: ``decide`` does.
"""
