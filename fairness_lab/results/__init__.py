# SPDX-License-Identifier: Apache-2.0

"""Files of runs on the testbed: written, read and checked.

Start with ``recorder``, then ``result``.
It never starts a guest.
"""
