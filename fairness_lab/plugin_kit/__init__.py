# SPDX-License-Identifier: Apache-2.0

"""New packages with a plugin, for authors of metrics, policies and orders.

Start with ``packages``; ``templates`` contains the texts of the files.
"""
