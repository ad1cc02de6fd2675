# SPDX-License-Identifier: Apache-2.0

"""Parser of Nova's messages: what they request, and their limits.

Start with ``parser``. All functions are pure: none reads a clock or calls a
service.
"""
