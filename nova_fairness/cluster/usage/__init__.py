# SPDX-License-Identifier: Apache-2.0

"""Use of accounts: charges, records, pledges, spending and prices.

Start with ``charging``: it updates the ledger. This package never decides
which request starts or which server is evicted.
"""
