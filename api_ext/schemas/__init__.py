# SPDX-License-Identifier: Apache-2.0

"""JSON schemas of request and response bodies, one module per kind of object.

Start with ``parts``, the shared parts of schemas. ``application`` validates
requests with them.
"""
