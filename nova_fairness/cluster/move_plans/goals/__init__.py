# SPDX-License-Identifier: Apache-2.0

"""Goals of migration plans, each in a module with its name.

Start with ``goal``: it contains the contract of goals. Goals never call Nova
and never write to the store.
"""
