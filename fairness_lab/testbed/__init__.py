# SPDX-License-Identifier: Apache-2.0

"""Scenarios on real parts: QEMU guests, libvirt, agents, Redis.

Start with ``running``: one run from begin to end.
It never touches a process that it did not start.
"""
