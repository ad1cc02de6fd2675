# SPDX-License-Identifier: Apache-2.0

"""All options, each with unit and range.

Start with ``opts``: it registers them.
It never reads a file by itself: oslo.config does.
"""
