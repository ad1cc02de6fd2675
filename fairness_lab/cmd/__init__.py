# SPDX-License-Identifier: Apache-2.0

"""Programs of the laboratory.

Start with ``lab`` for real guests, ``sim`` for simulated nodes.
It never judges a run by itself.
"""
