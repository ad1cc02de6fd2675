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
default policy would end. When that changes, weights go there at once; from
then on the default policy goes on, so that both end in the same place.
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

CHANGED = 0.1
"""A weight whose end moves by more (natural logarithm) goes there ..."""

ARRIVED = 0.05
"""... until it is as near as this."""

FORGOTTEN = 0.05
"""Of the usage of before may be left when the default policy goes on."""

SAME = 0.002
"""What is wanted has not changed if it differs by less."""

ACTIVE = 0.1
"""VMs that want less of what they can do not count for how far it is."""

FARTHEST_OFF = 1.0
"""More than this (natural logarithm) no kernel is off."""

_PER_VM = array_policy.Per.VM_CONTROL


@dataclasses.dataclass(frozen=True)
class Way:
    """How weights go to where the policy would end.

    :ivar part: of the way that is gone in a round.
    :ivar largest: step of a weight in a round, a factor.
    :ivar rest: rounds for which weights that are there wait for the others
        at least; more where usage is smoothed for longer.
    :ivar keep: of what the default policy has changed since they were there,
        for the next way.
    :ivar finish: whether the default policy goes on when they are there;
        they stay otherwise.
    :ivar share: by which users are compared.
    :ivar ahead: rounds that are run on the model.
    """

    part: float = 0.7
    largest: float = 4.0
    rest: int = 4
    keep: float = 1.0
    finish: bool = True
    share: str = ideal.DOMINANT
    ahead: int = ahead.AHEAD


class Foresight(feedback.FeedbackPolicy):
    """Goes at once where the default policy would end, and lets it go on.

    :param setup: whose bounds count.
    :param reports: what nodes know.
    :param way: how weights go.
    """

    FIELDS: ClassVar[Mapping[str, array_policy.Field]] = {
        **feedback.FeedbackPolicy.FIELDS,
        'aimed': array_policy.Field(_PER_VM),
        'offset': array_policy.Field(_PER_VM, 0.0),
        'rested': array_policy.Field(_PER_VM, 0.0),
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
        weights, found = super().decide(crowd, previous, memory, elapsed_s)
        kept = dict(found)
        for name in ('aimed', 'offset', 'rested'):
            kept[name] = memory[name].copy()
        aim, short = self._aim(crowd)
        for column in PLANNED:
            go, step = self._step(
                crowd, aim, short[:, column], previous, kept, column
            )
            stay = short[crowd.node, column] & ~go
            kept['offset'][stay, column] = (
                np.log(weights[stay, column]) - kept['aimed'][stay, column]
            ).clip(-FARTHEST_OFF, FARTHEST_OFF)
            weights[go, column] = previous[go, column] * np.exp(step[go])
            for name, field in feedback.FeedbackPolicy.FIELDS.items():
                if field.per is _PER_VM:
                    kept[name][go, column] = field.unknown
        return weights, kept

    def _aim(self, crowd: array_policy.Crowd) -> tuple[Floats, resources.Mask]:
        """Say where weights would end.

        :returns: (p, c) logarithms, and (k, c) on which nodes it matters.
        """
        aim = np.zeros((len(crowd.node), len(resources.CONTROLS)))
        short = np.zeros((crowd.nodes, aim.shape[1]), dtype=np.bool_)
        views = self._reports.views()
        acting = self._reports.acting
        for view, found in zip(views, self._ends(views), strict=True):
            for place in ahead.TIMED:
                here = found.short[acting[view.acting], place]
                short[view.acting, ahead.COLUMN[place]] |= here
            cells = view.model.cells
            users = len(view.model.quota)
            rows = np.flatnonzero(np.isin(crowd.node, view.acting))
            key = acting[crowd.node[rows]] * users + crowd.user[rows]
            cell = np.searchsorted(cells.node * users + cells.user, key)
            aim[rows] = np.log(found.weights[cell])
        return aim, short

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
        aim: Floats,
        short: resources.Mask,
        previous: allocation.Weights,
        kept: Mapping[str, Floats],
        column: int,
    ) -> tuple[resources.Mask, Floats]:
        """Say which weights go how far (logarithms) by what is foreseen."""
        node, way = crowd.node, self._way
        goal = aim[:, column] + way.keep * kept['offset'][:, column]
        move = goal - np.log(previous[:, column])
        counts = short[node] & (self._reports.doing[:, column] > ACTIVE)
        off = np.abs(aim[:, column] - kept['aimed'][:, column])
        fresh = _any(crowd, counts & ~(off <= CHANGED))
        kept['rested'][fresh[node], column] = 0.0
        going = fresh | _any(
            crowd, counts & (kept['rested'][:, column] < way.rest)
        )
        if not way.finish:
            going = short
        farthest = _largest(crowd, counts, np.abs(move))
        limit = np.log(way.largest)
        part = np.minimum(way.part, limit / farthest.clip(min=1e-9))
        step = (part[node] * move).clip(-limit, limit)
        left = _largest(crowd, counts, np.abs(move - step))
        arrived = (going & (left <= ARRIVED))[node]
        kept['aimed'][arrived, column] = aim[arrived, column]
        kept['rested'][arrived, column] += 1.0
        return (short & going)[node], step


def _any(crowd: array_policy.Crowd, rows: resources.Mask) -> resources.Mask:
    return np.asarray(np.bincount(crowd.node[rows], minlength=crowd.nodes) > 0)


def _largest(
    crowd: array_policy.Crowd, rows: resources.Mask, values: Floats
) -> Floats:
    """Give each node's largest value, 0 where there is none."""
    largest = np.zeros(crowd.nodes)
    np.maximum.at(largest, crowd.node[rows], values[rows])
    return largest


def _rounds_to_forget(decay_factor: float) -> int:
    """Say for how long smoothed usage is still that of before."""
    kept = max(1.0 - decay_factor, np.finfo(float).tiny)
    return int(np.ceil(np.log(FORGOTTEN) / np.log(kept)))


def make(
    cloud: model.Cloud,
    setup: model.Setup,
    form: wants.Form | None = None,
    way: Way | None = None,
) -> model.Setup:
    """Make agents that have foresight."""
    way = way or Way()
    rest = max(way.rest, _rounds_to_forget(setup.decay_factor))
    reports = wants.Reports(cloud, setup, form or wants.Form())
    policy = Foresight(setup, reports, dataclasses.replace(way, rest=rest))
    return dataclasses.replace(setup, policy_plugin=policy, listener=reports)
