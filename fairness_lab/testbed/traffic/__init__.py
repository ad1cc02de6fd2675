# SPDX-License-Identifier: Apache-2.0

"""Network traffic between guests and far ends, and its measurement.

Start with ``traffic``.
It never sends to an address outside its namespaces.
"""
