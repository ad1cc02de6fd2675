# SPDX-License-Identifier: Apache-2.0

"""What the agent observes over many rounds: idle VMs and lack of CPU time.

Start with ``idle``.
It never changes a weight and never evicts a server.
"""
