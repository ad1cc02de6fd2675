# SPDX-License-Identifier: Apache-2.0

"""RPCs between the HTTP API, the cluster service and agents.

Start with ``protocol``, then ``endpoint`` and ``requests``. ``arguments``
validates every argument before it is used.
"""
