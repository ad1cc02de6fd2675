# SPDX-License-Identifier: Apache-2.0
"""Defaults that agents, laboratory and simulator share.

Their evidence is on the contributors' page about policies.
"""

METRIC = 'DominantShareMetric'

POLICY = 'foresight'

MAX_WEIGHT_RATIO = 20.0
"""Largest weight on a node divided by the smallest."""

METRIC_DEADLINE_S = 1.0
"""Seconds that a metric or a policy may take in a round."""
