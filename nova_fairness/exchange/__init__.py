# SPDX-License-Identifier: Apache-2.0

"""Reports between the agents of a domain.

Start with ``mesh``, which sends and receives them; ``ledger`` stores the
newest. The package accepts no number of a peer that exceeds ``limits``.
"""
