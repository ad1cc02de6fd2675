# SPDX-License-Identifier: Apache-2.0

"""Metrics that come with the product.

Start with ``greediness``.
It never looks at anything but the round that it gets.
"""
