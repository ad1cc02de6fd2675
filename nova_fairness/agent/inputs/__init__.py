# SPDX-License-Identifier: Apache-2.0

"""Inputs of rounds: choices, preferences, shares, rates and facts of Nova.

Start with ``active_settings``: what is in force, and who chose it.
It never writes to the kernel.
"""
