# SPDX-License-Identifier: Apache-2.0

"""A metric with the same heaviness for all users."""

import numpy as np

from nova_fairness.measure import metric


class UniformMetric(metric.Metric):
    """Returns a heaviness of 0 for all VMs and users.

    With it the agent measures and reports but prefers no user.
    """

    description = 'Finds all users equally heavy, so that none is preferred.'

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Return 0 for each VM."""
        return np.zeros(len(demands.usage))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Return 0 for each user."""
        return np.zeros(totals.user_count)
