# SPDX-License-Identifier: Apache-2.0

"""Calls between the API, the cluster service and agents.

Start with ``protocol``, then ``endpoint`` and ``requests``.
It never trusts an argument before ``arguments`` checked it.
"""
