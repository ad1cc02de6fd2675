# SPDX-License-Identifier: Apache-2.0

"""Accounts of the share tree: shares, limits and their files.

Start with ``accounts``: the file, and what was set meanwhile.
It never charges an account: ``usage`` does.
"""
