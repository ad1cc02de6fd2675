# SPDX-License-Identifier: Apache-2.0

"""Common code of metrics that compare users by the used parts of their
quotas.
"""

import abc

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import resources


class QuotaMetric(metric.Metric, abc.ABC):
    """Base class of metrics that make users equal, and not VMs."""

    def combine(
        self,
        user_heaviness: metric.Heaviness,
        instance_heaviness: metric.Heaviness,
    ) -> metric.Heaviness:
        """Return the user's heaviness for each of the user's VMs."""
        return user_heaviness.copy()


def parts_of_quota(totals: metric.Totals) -> resources.Vector:
    """Return ``usage_r / quota_r`` of each user's total usage.

    :returns: (u, r) finite; 0 where the quota is 0, because a resource to
        which no user is entitled makes no user heavy.
    """
    entitled = totals.quota > 0
    quota = np.where(entitled, totals.quota, 1.0)
    return np.where(entitled, totals.usage / quota, 0.0)
