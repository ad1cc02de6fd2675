# SPDX-License-Identifier: Apache-2.0

"""From readings to use, endowments and heaviness: pure arithmetic.

Start with ``round``, then ``metric``: the contract.
It never reads a clock, a file, the network or the configuration.
"""
