# SPDX-License-Identifier: Apache-2.0

"""Metrics that are included in the product.

Start with ``greediness``. A metric uses no data except the round that it gets.
"""
