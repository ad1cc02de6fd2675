# SPDX-License-Identifier: Apache-2.0

"""Dominant resource fairness: only the resource with the largest share
counts.
"""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import quota_parts
from nova_fairness.model import pairing


class DominantShareMetric(quota_parts.QuotaMetric):
    """Heaviness is the largest used part of a quota, over the resources.

    The largest share of a sum is not the sum of the largest shares: users are
    compared by their total usage, not by their VMs' heaviness. All VMs of a
    user have the same heaviness, so that users are equal and not VMs.
    """

    description = (
        'Compares users by their dominant resource: the one where they use '
        'the largest part of their quota (dominant resource fairness).'
    )

    suits = frozenset({pairing.PolicyKind.EQUALISES})
    """A user that uses exactly its quota has a heaviness of 1, while
    policies that map heaviness to weights expect 0."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Return ``max_r usage_r * user_count / supply_r`` of each VM."""
        supply = demands.supply
        scale = np.where(supply > 0, demands.user_count, 0.0)
        share = demands.usage * (scale / np.where(supply > 0, supply, 1.0))
        return np.asarray(share.max(axis=1))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Return ``max_r usage_r / quota_r`` of each user's total usage."""
        parts = quota_parts.parts_of_quota(totals)
        return np.asarray(parts.max(axis=1))
