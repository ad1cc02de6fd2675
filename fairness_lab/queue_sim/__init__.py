# SPDX-License-Identifier: Apache-2.0

"""Simulator of the queue: the product's planners on simulated clouds.

Start with ``engine``; ``reader`` reads its scenarios.
It never runs the cluster service itself or asks a real cloud.
"""
