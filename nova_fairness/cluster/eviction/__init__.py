# SPDX-License-Identifier: Apache-2.0

"""Evictions of servers, whatever their cause, until their room is free.

Start with ``evictor``; the other modules are the causes.
It never chooses victims by itself: ``planners.preemption`` does.
"""
