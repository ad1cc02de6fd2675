# SPDX-License-Identifier: Apache-2.0

"""Goals of migration plans, each in the module of its name.

Start with ``goal``: the contract. Goals never ask Nova and never write to the
store.
"""
