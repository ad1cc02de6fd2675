# SPDX-License-Identifier: Apache-2.0

"""Reasons why a VM gets what it gets, as values and as sentences.

Start with ``answer``.
It never changes what it explains.
"""
