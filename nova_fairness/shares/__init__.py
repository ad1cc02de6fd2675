# SPDX-License-Identifier: Apache-2.0

"""Shares of accounts, and the numerical methods for them.

Start with ``tree`` for accounts, ``maxmin`` for the fair division.
This package never reads a clock, a file, the network or the configuration.
"""
