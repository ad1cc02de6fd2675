# SPDX-License-Identifier: Apache-2.0
"""Defaults that agents, laboratory and simulator share.

The evidence for them is on the contributors' page on policies.
"""

METRIC = 'DominantShareMetric'

POLICY = 'foresight'

MAX_WEIGHT_RATIO = 20.0
"""Largest to smallest weight of a node."""
