# SPDX-License-Identifier: Apache-2.0

"""Readings of a node: its VMs from libvirt, and counters from the kernel.

Start with ``inventory``, then ``counters``. The package never writes to the
kernel or to libvirt.
"""
