# SPDX-License-Identifier: Apache-2.0

"""Distances between a run and the ideal.

Start with ``measures``: each value with its unit.
It never shares code with the policies that it judges.
"""
