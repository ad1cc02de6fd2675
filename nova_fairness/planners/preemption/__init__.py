# SPDX-License-Identifier: Apache-2.0

"""Victims: which servers are evicted for a request, at the least cost.

Start with ``planner``; ``victims`` is the interface of plugins.
It never carries out an eviction.
"""
