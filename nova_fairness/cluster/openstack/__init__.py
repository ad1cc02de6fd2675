# SPDX-License-Identifier: Apache-2.0

"""Clients of other services: Nova, Placement, Keystone and Glance.

Start with ``clients``: what a failure of a call means to its caller.
It never decides what becomes of a request or a server.
"""
