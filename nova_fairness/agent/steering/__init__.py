# SPDX-License-Identifier: Apache-2.0

"""Means of a round: controls, throttles, pinned cores and their effect.

Start with ``controls``: it builds those that the node has.
It never decides how heavy a user is.
"""
