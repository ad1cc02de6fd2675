# SPDX-License-Identifier: Apache-2.0

"""Contracts of plugins as tests that their authors run.

Start with the contract of your kind of plugin.
Programs never import this package.
"""
