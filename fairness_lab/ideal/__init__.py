# SPDX-License-Identifier: Apache-2.0

"""The fair division that weights could reach at best, worked out at once.

Start with ``ideal``, then ``bounded``.
It never steers a node.
"""
