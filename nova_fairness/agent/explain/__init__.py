# SPDX-License-Identifier: Apache-2.0

"""Explanations why a VM gets its resources, as values and as sentences.

Start with ``answer``. The explanation never changes weights or settings.
"""
