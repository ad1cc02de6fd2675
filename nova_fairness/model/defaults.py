# SPDX-License-Identifier: Apache-2.0
"""Defaults that agents, laboratory and simulator share.

The evidence for them is on the contributors' page on policies.
"""

METRIC = 'DominantShareMetric'

POLICY = 'foresight'

MAX_WEIGHT_RATIO = 20.0
"""Largest to smallest weight of a node."""

METRIC_DEADLINE_S = 1.0
"""Seconds that a metric or a policy may take in a round."""
