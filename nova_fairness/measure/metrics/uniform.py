# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Nobody is heavy."""

import numpy as np

from nova_fairness.measure import metric


class UniformMetric(metric.Metric):
    """Finds all VMs and users equally heavy: 0.

    With it the agent measures and reports but prefers nobody.
    """

    description = 'Finds everybody equally heavy, so that nobody is preferred.'

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Find every VM equally heavy."""
        return np.zeros(len(demands.usage))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Find every user equally heavy."""
        return np.zeros(totals.user_count)
