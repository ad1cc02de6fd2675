# SPDX-License-Identifier: Apache-2.0

"""The cluster service: one leader plans for the whole cloud and carries out.

Start with ``service``: its loop of snapshot, plan and execution.
It never measures or weights running servers: agents do.
"""
