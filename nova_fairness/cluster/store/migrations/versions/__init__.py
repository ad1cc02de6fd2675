# SPDX-License-Identifier: Apache-2.0

"""Revisions of the schema, the oldest first; each has the name of its file.

Start with ``v1_tables``: it creates the tables of this version in a new
database. A later revision never imports ``tables``: it changes the tables of a
release.
"""
