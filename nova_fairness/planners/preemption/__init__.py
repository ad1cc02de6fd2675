# SPDX-License-Identifier: Apache-2.0

"""Choice of victims: the servers whose eviction costs least.

Start with ``planner``; ``victims`` is the interface of plugins. This package
never carries out an eviction.
"""
