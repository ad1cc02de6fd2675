# SPDX-License-Identifier: Apache-2.0

"""Shares of accounts and their numerics: pure arithmetic.

Start with ``tree`` for accounts, ``maxmin`` for the fair division.
It never reads a clock, a file, the network or the configuration.
"""
