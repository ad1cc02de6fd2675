# SPDX-License-Identifier: Apache-2.0

"""Observations over many rounds: idle VMs and lack of CPU time.

Start with ``idle``. This package never changes a weight and never evicts a
server.
"""
