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

"""Foresight from what users want: an experiment, no plugin.

Every node works out, from what the users want on every node, where the
default policy would end, and goes there at once. What its own kernel then
gives otherwise than foreseen it corrects by itself.
"""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import policies_ahead as ahead
import policies_wants as wants

from nova_fairness.decide import array_policy
from nova_fairness.decide.policies import feedback
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.sim import ideal
from nova_fairness.sim import model

Floats = npt.NDArray[np.float64]

PLANNED = sorted({ahead.COLUMN[place] for place in ahead.TIMED})
"""Controls of what is divided over time; memory is left to feedback."""

NEAR = 0.05
"""Where the end is this near (natural logarithm), all of the way is gone."""

SAME = 0.002
"""What is wanted has not changed if it differs by less."""

ACTIVE = 0.1
"""VMs that want less of what they can do not count for how far it is."""

FARTHEST_OFF = 1.0
"""More than this (natural logarithm) no kernel is off."""

STILL_WAITS = 0.95
"""What has more of what it wants does not show what its weight is worth."""

_PER_VM = array_policy.Per.VM_CONTROL


@dataclasses.dataclass(frozen=True)
class Way:
    """How weights go to where the policy would end.

    :ivar part: of the way that is gone in a round.
    :ivar largest: step of a weight in a round, a factor.
    :ivar gain: part of what kernels give otherwise than asked that is made
        good in a round; 0 for nothing.
    :ivar share: by which users are compared.
    :ivar ahead: rounds that are run on the model.
    """

    part: float = 0.7
    largest: float = 4.0
    gain: float = 0.5
    share: str = ideal.DOMINANT
    ahead: int = ahead.AHEAD


class Foresight(feedback.FeedbackPolicy):
    """Goes at once where the default policy would end, of what is divided.

    :param setup: whose bounds count.
    :param reports: what nodes know.
    :param way: how weights go.
    """

    FIELDS: ClassVar[Mapping[str, array_policy.Field]] = {
        **feedback.FeedbackPolicy.FIELDS,
        'offset': array_policy.Field(_PER_VM, 0.0),
    }

    def __init__(
        self, setup: model.Setup, reports: wants.Reports, way: Way
    ) -> None:
        self._ratio = setup.max_weight_ratio
        self._reports = reports
        self._way = way
        self._known: dict[int, tuple[ahead.Model, ahead.End]] = {}

    def decide(
        self,
        crowd: array_policy.Crowd,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        contended = crowd.contended.copy()
        contended[:, PLANNED] = False
        weights, found = super().decide(
            dataclasses.replace(crowd, contended=contended),
            previous,
            memory,
            elapsed_s,
        )
        offset = memory['offset'].copy()
        seen = self._see(crowd, np.log(previous))
        for column in PLANNED:
            known = np.isfinite(seen.off[:, column])
            less = -seen.off[known, column] - offset[known, column]
            offset[known, column] += self._way.gain * less
            offset[:, column].clip(
                -FARTHEST_OFF, FARTHEST_OFF, out=offset[:, column]
            )
            step = self._step(
                crowd, seen, column, offset[:, column], previous[:, column]
            )
            weights[:, column] = previous[:, column] * np.exp(step)
        return weights, {**found, 'offset': offset}

    def _see(self, crowd: array_policy.Crowd, log: Floats) -> '_Seen':
        """Say where weights would end.

        :param log: (p, c) logarithms of the weights in force.
        """
        aim, off = np.zeros_like(log), np.full(log.shape, np.nan)
        lacks = np.zeros((crowd.nodes, len(resources.RESOURCES)), np.bool_)
        views = self._reports.views()
        acting = self._reports.acting
        for view, found in zip(views, self._ends(views), strict=True):
            lacks[view.acting] = found.short[acting[view.acting]]
            cells = view.model.cells
            rows = np.flatnonzero(np.isin(crowd.node, view.acting))
            users = len(view.model.quota)
            key = acting[crowd.node[rows]] * users + crowd.user[rows]
            cell = np.searchsorted(cells.node * users + cells.user, key)
            aim[rows] = np.log(found.weights[cell])
        short = np.zeros((crowd.nodes, log.shape[1]), dtype=np.bool_)
        for place in ahead.TIMED:
            column = ahead.COLUMN[place]
            short[:, column] |= lacks[:, place]
            here = lacks[crowd.node, place]
            gets = self._off(crowd, here, place, log[:, column])
            off[:, column] = np.where(here, gets, off[:, column])
        return _Seen(aim, short, off)

    def _off(
        self,
        crowd: array_policy.Crowd,
        here: resources.Mask,
        place: int,
        log: Floats,
    ) -> Floats:
        """Compare what VMs of one node get for their weights, (p,).

        :param here: (p,) on nodes that are short of the resource.
        :param log: (p,) of their weights.
        """
        used = self._reports.used[:, place]
        known = here & (used < STILL_WAITS * self._reports.wanted[:, place])
        known &= used > 0
        size = crowd.vcpus if place == wants.CPU_TIME else 1.0
        gets = np.log(np.where(known, used, 1.0) / size) - log
        rivals = np.bincount(crowd.node[known], minlength=crowd.nodes)
        total = np.bincount(crowd.node[known], gets[known], crowd.nodes)
        means = total / np.maximum(rivals, 1)
        return np.where(known, gets - means[crowd.node], np.nan)

    def _ends(self, views: list[wants.View]) -> list[ahead.End]:
        """Run the model of those for whom something has changed."""
        keys = [int(self._reports.acting[view.acting[0]]) for view in views]
        new = [
            (key, view.model)
            for key, view in zip(keys, views, strict=True)
            if not self._is_known(key, view.model)
        ]
        if new:
            found = ahead.ends(
                [item for _, item in new],
                self._ratio,
                self._way.share,
                self._way.ahead,
            )
            for (key, item), end in zip(new, found, strict=True):
                self._known[key] = (item, end)
        return [self._known[key][1] for key in keys]

    def _is_known(self, key: int, given: ahead.Model) -> bool:
        if key not in self._known:
            return False
        before, now = self._known[key][0].cells, given.cells
        if len(before.node) != len(now.node):
            return False
        same = (before.node == now.node) & (before.user == now.user)
        if not same.all():
            return False
        beyond = self._known[key][0].beyond
        return all(
            bool((np.abs(one - other) <= SAME * other).all())
            for one, other in (
                (now.wanted, before.wanted),
                (now.size, before.size),
                (given.beyond, beyond),
            )
        )

    def _step(
        self,
        crowd: array_policy.Crowd,
        seen: '_Seen',
        column: int,
        offset: Floats,
        previous: Floats,
    ) -> Floats:
        """Say how far weights go, (p,): logarithms."""
        short = seen.short[crowd.node, column]
        counts = short & (self._reports.doing[:, column] > ACTIVE)
        goal = _centred(
            crowd, counts, seen.aim[:, column] + offset, self._ratio
        )
        move = np.where(short, goal - np.log(previous), 0.0)
        farthest = _largest(crowd, counts, np.abs(move))
        limit = np.log(self._way.largest)
        part = np.where(farthest > NEAR, self._way.part, 1.0)
        part = np.minimum(part, limit / farthest.clip(min=1e-9))
        return np.asarray((part[crowd.node] * move).clip(-limit, limit))


@dataclasses.dataclass(frozen=True, eq=False)
class _Seen:
    """What is foreseen for the VMs of the nodes that act.

    :ivar aim: (p, c) logarithms of the weights at the end.
    :ivar short: (k, c) on which nodes they matter.
    :ivar off: (p, c) logarithms of what each VM gets for its weight over what
        the others of the node get; NaN for who does not wait.
    """

    aim: Floats
    short: resources.Mask
    off: Floats


def _centred(
    crowd: array_policy.Crowd, rows: resources.Mask, goal: Floats, ratio: float
) -> Floats:
    """Shift the goals of nodes on which some are out of bounds.

    A common factor changes no share.
    """
    high, low = (np.full(crowd.nodes, -np.inf) for _ in range(2))
    np.maximum.at(high, crowd.node[rows], goal[rows])
    np.maximum.at(low, crowd.node[rows], -goal[rows])
    out = np.maximum(high, low) > np.log(ratio) / 2
    middle = np.where(out, high, 0.0) - np.where(out, low, 0.0)
    return np.asarray(goal - middle[crowd.node] / 2)


def _largest(
    crowd: array_policy.Crowd, rows: resources.Mask, values: Floats
) -> Floats:
    """Give each node's largest value, 0 where there is none."""
    largest = np.zeros(crowd.nodes)
    np.maximum.at(largest, crowd.node[rows], values[rows])
    return largest


def make(
    cloud: model.Cloud,
    setup: model.Setup,
    form: wants.Form | None = None,
    way: Way | None = None,
) -> model.Setup:
    """Make agents that have foresight."""
    reports = wants.Reports(cloud, setup, form or wants.Form())
    policy = Foresight(setup, reports, way or Way())
    return dataclasses.replace(setup, policy_plugin=policy, listener=reports)
