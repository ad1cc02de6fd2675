# SPDX-License-Identifier: Apache-2.0

"""The database: requests, ledger, evictions, plans and hosts.

Start with ``store``; ``tables`` has the columns. It never calls another
service.
"""
