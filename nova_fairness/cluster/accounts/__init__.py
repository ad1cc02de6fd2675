# SPDX-License-Identifier: Apache-2.0

"""Accounts of the share tree: shares, limits and their files.

Start with ``accounts``: it joins the file with settings by callers. It never
charges an account: ``usage`` does.
"""
