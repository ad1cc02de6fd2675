# SPDX-License-Identifier: Apache-2.0

"""Readings of a node: VMs by libvirt, counters by the kernel.

Start with ``inventory``, then ``counters``.
It never writes to the kernel or to libvirt.
"""
