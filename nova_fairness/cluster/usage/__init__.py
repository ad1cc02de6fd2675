# SPDX-License-Identifier: Apache-2.0

"""What accounts used: charges, records, pledges, spending and prices.

Start with ``charging``: it moves the ledger forward.
It never decides who starts or who is evicted.
"""
