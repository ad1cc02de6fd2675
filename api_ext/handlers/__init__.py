# SPDX-License-Identifier: Apache-2.0

"""Handlers of the HTTP API, one module per kind of object.

Start with ``host``, whose handlers query agents. Handlers never query Nova;
``location`` does.
"""
