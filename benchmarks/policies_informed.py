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

"""Policies that know more than a node knows today: experiments.

They are told of all nodes what reports would have to say, and are no
plugins. Only the CPU is scarce in what they steer.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import array_policy
from nova_fairness.decide import bounds
from nova_fairness.decide import levels
from nova_fairness.decide.policies import feedback
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import quota
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.sim import model

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

AHEAD = 40
"""Rounds that are run on the model."""

PART = 0.7
"""Of the way to their end that is gone in a round."""

WAITS = 0.9
"""Who gets less of what he wants than this waits."""

SLOWED = 0.15
"""Least part of an answer that is left where nobody needs it."""

CPU = resources.CONTROLS.index(resources.Control.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')


class Level(feedback.FeedbackPolicy):
    """Takes from the heavy on a node as much as its light ones lack.

    Every node is told the mean heaviness of all users who wait anywhere. If
    its users are together further above this level than below, those above
    are taken for less heavy, so that they give as much as is needed there.

    :ivar both: likewise if they are together further below.
    """

    both = False

    def decide(
        self,
        crowd: array_policy.Crowd,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        waits = crowd.wanting[:, CPU] & crowd.contended[crowd.node, CPU]
        if waits.any():
            shaped = self._shaped(crowd, np.flatnonzero(waits))
            crowd = dataclasses.replace(crowd, heaviness=shaped)
        return super().decide(crowd, previous, memory, elapsed_s)

    def _shaped(
        self, crowd: array_policy.Crowd, waiting: npt.NDArray[np.intp]
    ) -> Floats:
        _, first = np.unique(crowd.user[waiting], return_index=True)
        off = crowd.heaviness - crowd.heaviness[waiting[first]].mean()
        both = np.stack([crowd.node[waiting], crowd.user[waiting]])
        _, first = np.unique(both, axis=1, return_index=True)
        rows = waiting[first]
        node, nodes = crowd.node[rows], crowd.nodes
        above = np.bincount(node, off[rows].clip(min=0), nodes)
        below = np.bincount(node, -off[rows].clip(max=0), nodes)
        down = _part(below, above)
        up = _part(above, below) if self.both else np.ones(nodes)
        factor = np.where(off > 0, down[crowd.node], up[crowd.node])
        return np.asarray(crowd.heaviness - off + factor * off)


def _part(need: Floats, given: Floats) -> Floats:
    return np.clip(need / np.where(given > 0, given, 1.0), SLOWED, 1.0)


class Seeing(dominant_share.DominantShareMetric):
    """The default metric; tells what VMs used in the last interval."""

    used: Floats = np.zeros(0)

    def instances(self, demands: metric_base.Demands) -> metric_base.Heaviness:
        self.used = demands.usage[:, CPU_TIME].copy()
        return super().instances(demands)


class Foresight(feedback.FeedbackPolicy):
    """Goes at once where the default policy would end.

    Runs the default policy on a model of all nodes: what they have, what
    every VM used, its weight, and whether it waits.

    :param cloud: that is steered.
    :param setup: whose bounds count.
    :param seeing: the metric of the same run.
    """

    def __init__(
        self, cloud: model.Cloud, setup: model.Setup, seeing: Seeing
    ) -> None:
        self._cloud = cloud
        self._setup = setup
        self._seeing = seeing
        supply = cloud.capacity.sum(axis=0)
        self._quota = quota.quotas(supply, cloud.user_weight)[:, CPU_TIME]

    def decide(
        self,
        crowd: array_policy.Crowd,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        contended = crowd.contended[crowd.node, CPU]
        weights = previous.copy()
        if not contended.any():
            return weights, memory
        move = np.log(self._end(crowd, previous) / previous[:, CPU])
        farthest = np.zeros(crowd.nodes)
        np.maximum.at(farthest, crowd.node, np.abs(move))
        fits = feedback.LARGEST_STEP / farthest.clip(min=1e-9)
        step = np.minimum(PART, fits)[crowd.node] * move
        weights[:, CPU] *= np.exp(np.where(contended, step, 0.0))
        return weights, memory

    def _end(
        self, crowd: array_policy.Crowd, previous: allocation.Weights
    ) -> Floats:
        """Run the default policy on the model; give the weights, (n,)."""
        cloud, node, user = self._cloud, crowd.node, crowd.user
        used = self._seeing.used / cloud.interval_s
        most = np.minimum(crowd.vcpus, cloud.cpus[node]) * cloud.speed[node]
        wants = np.where(crowd.wanting[:, CPU], most, used)
        weights, memory = previous, self.nothing(len(node), crowd.nodes)
        smoothed = used
        for _ in range(AHEAD):
            got, _ = levels.fill(
                cloud.capacity[:, CPU_TIME],
                node,
                wants,
                crowd.vcpus * weights[:, CPU],
            )
            smoothed = (smoothed + got) / 2
            more = np.bincount(user, smoothed - used, len(self._quota))
            seen = dataclasses.replace(
                crowd,
                heaviness=crowd.heaviness + (more / self._quota)[user],
                wanting=_waiting(crowd, got < WAITS * wants),
            )
            wished, memory = super().decide(
                seen, weights, memory, cloud.interval_s
            )
            weights = bounds.bounded(
                wished,
                weights,
                self._setup.max_weight_ratio,
                self._setup.largest_step,
            )
        return weights[:, CPU]


def _waiting(crowd: array_policy.Crowd, cpu: Bools) -> resources.Mask:
    waiting = np.zeros_like(crowd.wanting)
    waiting[:, CPU] = cpu
    return waiting
