# SPDX-License-Identifier: Apache-2.0

"""Accounts of the share tree: their shares, their limits, and the files that
define them.

Start with ``accounts``: it joins the file with settings by callers. It never
charges an account: ``usage`` does.
"""
