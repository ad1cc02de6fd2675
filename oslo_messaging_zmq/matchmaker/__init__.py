# SPDX-License-Identifier: Apache-2.0

"""Discovery of listeners and their addresses.

Start with ``contract``; ``redis`` implements it. The package never transmits a
message.
"""
