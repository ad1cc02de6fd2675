# SPDX-License-Identifier: Apache-2.0

"""Answers to the calls of users and operators over RPC.

Start with ``requests``: it contains the endpoint of all calls. This package
never handles HTTP: ``api_ext`` does.
"""
