# SPDX-License-Identifier: Apache-2.0

"""Discovery: who listens where.

Start with ``contract``; ``redis`` keeps it.
It never carries a message.
"""
