# SPDX-License-Identifier: Apache-2.0

"""Clients of OpenStack services: Nova, Placement, Keystone and Glance.

Start with ``clients``: it translates failed calls into errors. This package
never decides about a request or a server.
"""
