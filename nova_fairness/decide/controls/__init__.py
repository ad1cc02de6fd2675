# SPDX-License-Identifier: Apache-2.0

"""From weights to values of the kernel, one module for each resource.

Start with ``scale``: what all have in common.
It never writes them.
"""
