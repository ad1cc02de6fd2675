# SPDX-License-Identifier: Apache-2.0

"""Dominant resource fairness: the resource that one uses most counts."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import quota_parts
from nova_fairness.model import pairing


class DominantShareMetric(quota_parts.QuotaMetric):
    """Heaviness is the largest part of a quota that is used.

    The largest share of a sum is not the sum of the largest shares: users
    are weighed by their summed usage, not by their VMs' heaviness. All VMs
    of a user are treated alike, so that users are equal and not VMs.
    """

    description = (
        'Compares users by their dominant resource: the one where they use '
        'the largest part of their quota (dominant resource fairness).'
    )

    suits = frozenset({pairing.PolicyKind.EQUALISES})
    """A user that uses its own quota has a heaviness of 1, and not the 0 that
    maps take for the middle."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """``max_r usage_r * user_count / supply_r``."""
        supply = demands.supply
        scale = np.where(supply > 0, demands.user_count, 0.0)
        share = demands.usage * (scale / np.where(supply > 0, supply, 1.0))
        return np.asarray(share.max(axis=1))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """``max_r usage_r / quota_r`` of the summed usage."""
        parts = quota_parts.parts_of_quota(totals)
        return np.asarray(parts.max(axis=1))
