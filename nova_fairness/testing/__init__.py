# SPDX-License-Identifier: Apache-2.0

"""Contracts of plugins, as tests for their authors.

Start with the contract of your kind of plugin. Programs never import this
package.
"""
