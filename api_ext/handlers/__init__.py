# SPDX-License-Identifier: Apache-2.0

"""Handlers of the HTTP interface, one module for each kind of object.

Start with ``host``: handlers that ask agents. They never ask Nova:
``location`` does.
"""
