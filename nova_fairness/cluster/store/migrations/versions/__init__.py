# SPDX-License-Identifier: Apache-2.0

"""Revisions of the schema, the oldest first.

Start with the newest.
It never imports the tables: these change later.
"""
