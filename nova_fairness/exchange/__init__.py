# SPDX-License-Identifier: Apache-2.0

"""Reports between the agents of a domain.

Start with ``mesh``: sends and hears them; ``ledger`` keeps the newest.
It never takes a number of a peer that ``limits`` does not allow.
"""
