# SPDX-License-Identifier: Apache-2.0

"""Clients of other services: Nova, Placement, Keystone and Glance.

Start with ``clients``: it maps failures of calls to errors. It never decides
about a request or a server.
"""
