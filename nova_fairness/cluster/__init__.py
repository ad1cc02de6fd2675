# SPDX-License-Identifier: Apache-2.0

"""The cluster service: one leader plans for the whole cloud and applies plans.

Start with ``service``: it repeats snapshot, plan and execution. It never
measures or weights running servers: agents do.
"""
