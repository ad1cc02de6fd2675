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

"""Reports that also say what users want: what every node would know."""

from collections.abc import Sequence
import dataclasses
import enum

import numpy as np
import numpy.typing as npt
import policies_ahead as ahead

from nova_fairness.measure import quota
from nova_fairness.model import resources
from nova_fairness.sim import chance
from nova_fairness.sim import model

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

STALL = 0.1
"""Part of an interval from which a flag says that a VM waits."""

ALL = 0.999
"""Who waits for longer may want anything."""

BUSY = 0.9
"""Part of a resource from which VMs wait for it and not for another one that
the same control steers."""

WORKS = 0.02
"""A VM that wants this part of a node's disk or network counts in full."""

LEAST = 1e-3
"""Size of a cell whose VMs do nothing."""

NEVER = -1

CPU_TIME = resources.RESOURCES.index('cpu_time')


class Told(enum.Enum):
    """What reports say of users beside what they say today."""

    WANTED = 'wanted'
    """How much they would use if there were plenty: by how long they waited,
    and at most what their VMs can."""

    FLAG = 'flag'
    """Whether they wait: then they may want all that their VMs can."""


class Size(enum.Enum):
    """How it is known what the kernel weighs a user's VMs by."""

    TOLD = 'told'
    """Reports say it of the VMs that want something."""

    ALL = 'all'
    """All VMs are taken for it: the endowment says it."""

    WANTED = 'wanted'
    """By the CPUs that are wanted: nothing else is told."""


@dataclasses.dataclass(frozen=True)
class Form:
    """Of the reports.

    :ivar told: what they say.
    :ivar excess: what VMs want beyond what they have is told so many times
        as large as it is.
    :ivar noise: what is told of a VM that waits is up to this part too large
        or too small, anew in every round.
    :ivar size: how it is known what VMs weigh.
    :ivar hold: rounds for which a report counts that is not followed by
        another.
    :ivar hops: how far nodes look; ``None`` for all that they hear.
    """

    told: Told = Told.WANTED
    excess: float = 1.0
    noise: float = 0.0
    size: Size = Size.TOLD
    hold: float = 10.0
    hops: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """What some of the nodes that act now know.

    :ivar acting: their positions among these.
    :ivar model: what they know.
    """

    acting: Places
    model: ahead.Model


class Reports:
    """Hears what every node reads, and tells the others as far as it arrives.

    :param cloud: that is steered.
    :param setup: of its agents.
    :param form: of the reports.

    :ivar acting: nodes that act now.
    :ivar used: (p, r) what each of their VMs used, per second.
    :ivar wanted: (p, r) what it wanted.
    :ivar doing: (p, c) part of what it can that each of their VMs wants.
    """

    def __init__(
        self, cloud: model.Cloud, setup: model.Setup, form: Form
    ) -> None:
        self._cloud = cloud
        self._form = form
        self._decay = setup.decay_factor
        self._hold = form.hold * setup.ticks
        count, nodes = len(cloud.vms), len(cloud.nodes)
        self._past = np.zeros((count, len(resources.RESOURCES)))
        self._where = np.full(count, NEVER, dtype=np.intp)
        self._told: dict[tuple[int, int], ahead.Cells] = {}
        self._newest = np.full((nodes, nodes), NEVER, dtype=np.int64)
        self._quota = quota.quotas(
            cloud.capacity.sum(axis=0), cloud.user_weight
        )
        self.acting = np.zeros(0, dtype=np.intp)
        self.used = np.zeros((0, len(resources.RESOURCES)))
        self.wanted = self.used
        self.doing = np.zeros((0, len(resources.CONTROLS)))

    def hear(self, heard: model.Heard) -> None:
        """Take what the nodes that act now have read."""
        used = self._used(heard)
        wanted = self._wanted(heard, used)
        self.acting, self.used, self.wanted = heard.acting, used, wanted
        self.doing = self._doing(heard, wanted)
        cells = self._cells(heard, used, wanted)
        for node in heard.acting:
            begin, end = np.searchsorted(cells.node, [node, node + 1])
            mine = np.zeros(len(cells.node), dtype=np.bool_)
            mine[begin:end] = True
            self._told[int(node), heard.tick] = cells.only(mine)
        self._arrive(heard)

    def _used(self, heard: model.Heard) -> Floats:
        """Give what VMs used in the newest interval, per second, (p, r)."""
        rows, usage = heard.rows, heard.usage
        past = self._past[rows]
        stayed = (self._where[rows] == heard.node)[:, np.newaxis]
        newest = (usage - (1 - self._decay) * past) / self._decay
        newest = np.where(stayed, newest.clip(min=0.0), usage)
        self._past[rows] = usage
        self._where[rows] = heard.node
        timed = resources.RESOURCES.time_shared
        return np.where(timed, newest / self._cloud.interval_s, usage)

    def _most(self, heard: model.Heard) -> Floats:
        """Give what VMs could use at most, per second, (p, r)."""
        cloud, node = self._cloud, heard.node
        most = cloud.capacity[node].copy()
        cpus = np.minimum(cloud.vcpus[heard.rows], cloud.cpus[node])
        most[:, CPU_TIME] = cpus * cloud.speed[node]
        return most

    def _wanted(self, heard: model.Heard, used: Floats) -> Floats:
        """Judge what VMs would use of a plenty, (p, r)."""
        nodes, most = len(self._cloud.nodes), self._most(heard)
        wanted = used.copy()
        for place in ahead.TIMED:
            stall = np.nan_to_num(heard.stall[:, ahead.COLUMN[place]])
            if place != CPU_TIME:
                total = np.bincount(heard.node, used[:, place], nodes)
                busy = total >= BUSY * self._cloud.capacity[:, place]
                stall = np.where(busy[heard.node], stall, 0.0)
            if self._form.told is Told.FLAG:
                more = np.where(stall > STALL, most[:, place], 0.0)
            else:
                left = np.where(stall < ALL, 1.0 - stall, 1.0)
                more = self._form.excess * used[:, place] * stall / left
                more = np.where(stall < ALL, more, most[:, place])
            drawn = 2 * chance.uniform(place, heard.tick, heard.rows) - 1
            noisy = np.where(more > 0, 1 + self._form.noise * drawn, 1.0)
            wanted[:, place] = np.clip(
                (used[:, place] + more) * noisy,
                None,
                np.maximum(most, used)[:, place],
            )
        return wanted

    def _doing(self, heard: model.Heard, wanted: Floats) -> Floats:
        most = self._most(heard)
        doing = np.zeros((len(wanted), len(resources.CONTROLS)))
        for place in ahead.TIMED:
            full = (1.0 if place == CPU_TIME else WORKS) * most[:, place]
            part = wanted[:, place] / np.where(full > 0, full, np.inf)
            column = ahead.COLUMN[place]
            doing[:, column] = np.maximum(doing[:, column], part.clip(max=1))
        return doing

    def _cells(
        self, heard: model.Heard, used: Floats, wanted: Floats
    ) -> ahead.Cells:
        """Sum up by user and node, in the order of both."""
        cloud, users = self._cloud, len(self._cloud.users)
        key = heard.node * users + cloud.user_of_vm[heard.rows]
        keys, cell = np.unique(key, return_inverse=True)
        cell = cell.reshape(-1)
        sizes = np.ones((len(key), len(resources.CONTROLS)))
        cpu = resources.CONTROLS.index(resources.Control.CPU)
        sizes[:, cpu] = cloud.vcpus[heard.rows]
        if self._form.size is not Size.ALL:
            sizes *= self.doing
        if self._form.size is Size.WANTED:
            sizes[:, cpu] = wanted[:, CPU_TIME] / cloud.speed[heard.node]
        return ahead.Cells(
            node=keys // users,
            user=keys % users,
            wanted=_summed(wanted, cell, len(keys)),
            used=_summed(used, cell, len(keys)),
            size=_summed(sizes, cell, len(keys)).clip(min=LEAST),
        )

    def _arrive(self, heard: model.Heard) -> None:
        """Note which reports each node that acts has; old ones are kept."""
        before = self._newest[heard.acting]
        kept = np.where(
            heard.tick - before <= self._hold, before, np.int64(NEVER)
        )
        known = np.where(heard.reports >= 0, heard.reports, kept)
        self._newest[heard.acting] = known
        every = self._newest[self._newest != NEVER]
        # Some are still on their way.
        held = heard.tick - int(np.ceil(self._hold))
        oldest = min(int(every.min(initial=heard.tick)), held)
        for key in [key for key in self._told if key[1] < oldest]:
            del self._told[key]

    def views(self) -> list[View]:
        """Say what the nodes that act now know; who knows the same, once."""
        known = self._newest[self.acting]
        if self._form.hops is None:
            rows, group = np.unique(known, axis=0, return_inverse=True)
            group = group.reshape(-1)
            return [
                View(np.flatnonzero(group == place), self._model(row))
                for place, row in enumerate(rows)
            ]
        return [
            View(np.array([place]), self._model(row, int(node)))
            for place, (row, node) in enumerate(
                zip(known, self.acting, strict=True)
            )
        ]

    def _model(
        self, newest: Sequence[int], around: int | None = None
    ) -> ahead.Model:
        cells = ahead.Cells.joined(
            self._told[node, int(tick)]
            for node, tick in enumerate(newest)
            if tick != NEVER
        )
        beyond = np.zeros_like(self._quota)
        if around is not None and self._form.hops is not None:
            inside = ahead.near(cells, around, self._form.hops)
            out = cells.only(~inside)
            beyond = _summed(out.used, out.user, len(self._quota))
            cells = cells.only(inside)
        return ahead.Model(cells, self._cloud.capacity, self._quota, beyond)


def _summed(values: Floats, group: Places, groups: int) -> Floats:
    return np.stack(
        [np.bincount(group, column, groups) for column in values.T], axis=1
    )
