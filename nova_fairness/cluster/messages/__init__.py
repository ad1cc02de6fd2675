# SPDX-License-Identifier: Apache-2.0

"""Parser of Nova's messages: what they request, and until when.

Start with ``parser``. It never reads a clock or asks a service: it is pure.
"""
