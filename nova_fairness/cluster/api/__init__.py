# SPDX-License-Identifier: Apache-2.0

"""Answers to the calls of users and operators over RPC.

Start with ``requests``: the endpoint of all calls.
It never speaks HTTP: ``api_ext`` does.
"""
