# SPDX-License-Identifier: Apache-2.0

"""Tables, bars and pages from recorded runs.

Start with ``report``: the page of one run.
It never runs anything.
"""
