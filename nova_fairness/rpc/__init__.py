# SPDX-License-Identifier: Apache-2.0

"""Calls between the API, the cluster service and agents.

Start with ``protocol``, then ``endpoint`` and ``requests``. No argument is
trusted before ``arguments`` has checked it.
"""
