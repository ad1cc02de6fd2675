# SPDX-License-Identifier: Apache-2.0

"""JSON schemas of bodies and answers, one module for each kind of object.

Start with ``parts``: what several schemas share.
It never reads a request: ``application`` applies these.
"""
