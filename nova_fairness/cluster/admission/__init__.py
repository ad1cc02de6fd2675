# SPDX-License-Identifier: Apache-2.0

"""The queue: it converts Nova's messages into requests, and dispatches them.

Start with ``intake``, then ``scheduler`` and ``dispatcher``. This package
never evicts a server.
"""
