# SPDX-License-Identifier: Apache-2.0

"""Policies that come with the product.

Start with ``foresight``: the default.
It never looks at anything but the round that it gets.
"""
