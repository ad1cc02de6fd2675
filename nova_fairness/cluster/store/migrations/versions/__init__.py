# SPDX-License-Identifier: Apache-2.0

"""Revisions of the schema, the oldest first; each is named like its file.

Start with ``v1_tables``: a new database gets the tables of this version there.
A later revision never imports ``tables``: it changes those of a release.
"""
