# SPDX-License-Identifier: Apache-2.0

"""A metric that finds all users equally heavy."""

import numpy as np

from nova_fairness.measure import metric


class UniformMetric(metric.Metric):
    """Finds all VMs and users equally heavy: 0.

    With it the agent measures and reports but prefers no user.
    """

    description = 'Finds all users equally heavy, so that none is preferred.'

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Find every VM equally heavy."""
        return np.zeros(len(demands.usage))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Find every user equally heavy."""
        return np.zeros(totals.user_count)
