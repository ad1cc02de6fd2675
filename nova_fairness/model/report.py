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

"""What nodes tell each other: totals per user, never per VM."""

from collections.abc import Mapping
import dataclasses

from nova_fairness.model import node
from nova_fairness.model import resources


@dataclasses.dataclass(frozen=True, eq=False)
class UserTotals:
    """Sums over the VMs of one user on one node.

    :ivar instance_heaviness: sum of the heaviness of the instance stage,
        norm units.
    :ivar endowment: (r,) sum, amounts of the report's interval.
    :ivar usage: (r,) sum, amounts of the report's interval.
    :ivar instances: number of VMs, >= 1.
    """

    instance_heaviness: float
    endowment: resources.Vector
    usage: resources.Vector
    instances: int


@dataclasses.dataclass(frozen=True, eq=False)
class NodeReport:
    """The newest totals of one node.

    :ivar host: name of the node.
    :ivar boot_id: of the agent's run; a change says that it started anew.
    :ivar sequence: number of the round in that run, ascending.
    :ivar interval_s: length of the measured interval, seconds.
    :ivar metric: name of the metric behind ``instance_heaviness``.
    :ivar resources: what the node has.
    :ivar users: totals by user id, sorted by id.
    """

    host: str
    boot_id: str
    sequence: int
    interval_s: float
    metric: str
    resources: node.NodeResources
    users: Mapping[str, UserTotals]


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """What one node knows of all: the newest usable report of each.

    :ivar reports: by host, sorted by host; the node's own among them.
    :ivar age_s: seconds since each report arrived, by host.
    :ivar left_out: why a known peer is not in ``reports``, by host.
    """

    reports: Mapping[str, NodeReport]
    age_s: Mapping[str, float]
    left_out: Mapping[str, str]
