# SPDX-License-Identifier: Apache-2.0

"""Asset fairness: all resources count, each by its part of the supply."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import quota_parts


class AssetFairnessMetric(quota_parts.QuotaMetric):
    """Heaviness is the mean, over the resources, of the used part of the
    quota.

    Users are compared with their own quotas, which may differ. All VMs of a
    user have the same heaviness, so that users are equal and not VMs.
    """

    description = (
        'Compares users by the sum of the parts of all resources that they '
        'use (asset fairness).'
    )

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Return ``sum_r usage_r * norm_r`` of each VM."""
        factors = metric.norm(demands.supply, demands.user_count)
        return np.asarray(demands.usage @ factors)

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Return ``sum_r usage_r / (R * quota_r)`` of each user's total
        usage.
        """
        parts = quota_parts.parts_of_quota(totals)
        return np.asarray(parts.mean(axis=1))
