# SPDX-License-Identifier: Apache-2.0

"""From heaviness to weights: pure arithmetic.

Start with ``policy``: the contract; ``round`` calls it.
It never reads a clock, a file, the network or the configuration.
"""
