# SPDX-License-Identifier: Apache-2.0

"""Common code of metrics that weigh users by their parts of a quota."""

import abc

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import resources


class QuotaMetric(metric.Metric, abc.ABC):
    """Base of metrics that make users equal, and not VMs."""

    def combine(
        self,
        user_heaviness: metric.Heaviness,
        instance_heaviness: metric.Heaviness,
    ) -> metric.Heaviness:
        """Treat all VMs of a user alike: by their user's heaviness."""
        return user_heaviness.copy()


def parts_of_quota(totals: metric.Totals) -> resources.Vector:
    """``usage_r / quota_r`` of each user's summed usage.

    :returns: (u, r) finite; zero where the quota is zero, because a resource
        to which no user is entitled can make no user heavy.
    """
    entitled = totals.quota > 0
    quota = np.where(entitled, totals.quota, 1.0)
    return np.where(entitled, totals.usage / quota, 0.0)
