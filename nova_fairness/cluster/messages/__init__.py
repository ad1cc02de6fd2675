# SPDX-License-Identifier: Apache-2.0

"""Messages of Nova, read as requests: what is asked for, and until when.

Start with ``parser``.
It never reads a clock or asks a service: it is pure.
"""
