# SPDX-License-Identifier: Apache-2.0

"""The queue: from a message of Nova to its dispatch.

Start with ``intake``, then ``scheduler`` and ``dispatcher``. This package
never evicts a server.
"""
