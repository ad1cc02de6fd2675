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

"""What the VMs of this node have wanted for longer than a moment."""

import numpy as np

from nova_fairness.measure import wants
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


class Wishes:
    """Remembers what was wanted in the interval before.

    :param node: what the node has.
    """

    def __init__(self, node: node_model.NodeResources) -> None:
        self._node = node
        self._before: dict[str, resources.Vector] = {}

    def lasting(self, usage: usage_model.Usage) -> resources.Vector:
        """Judge what VMs want, once for each interval.

        :returns: (n, r) amounts of the interval, at least the newest usage.
        """
        wanted = wants.wanted(usage, self._node)
        keys = [item.key for item in usage.incarnations]
        # Intervals differ in length; memory is wanted as it is used.
        rates = wanted / usage.interval_s
        unknown = np.full(wanted.shape[1], np.nan)
        before = [self._before.get(key, unknown) for key in keys]
        self._before = {
            key: rate
            for key, rate, known in zip(keys, rates, usage.known, strict=True)
            if known
        }
        past = np.array(before).reshape(wanted.shape) * usage.interval_s
        return wants.lasting(wanted, usage.newest, past)
