# SPDX-License-Identifier: Apache-2.0

"""JSON schemas of bodies and answers, one module for each kind of object.

Start with ``parts``: common parts of schemas. Schemas never read a request:
``application`` applies them.
"""
