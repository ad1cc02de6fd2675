# SPDX-License-Identifier: Apache-2.0

"""Cluster service: one leader process plans for the whole cloud and applies
the plans.

Start with ``service``: it repeats snapshot, plan and execution. It never
measures or weights running servers: agents do.
"""
