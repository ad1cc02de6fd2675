# SPDX-License-Identifier: Apache-2.0

"""The queue: from a message of Nova to its dispatch.

Start with ``intake``, then ``scheduler`` and ``dispatcher``.
It never evicts a server.
"""
