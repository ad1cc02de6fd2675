# SPDX-License-Identifier: Apache-2.0

"""Policy: go at once to the max-min fair allocation.

Every node works out, from the wants of users on every node, the allocation in
which all competing users are equally heavy, as far as weights reach, and goes
there. Where its own kernel then gives something else than foreseen, the node
corrects that by itself. Rounds do not grow with the number of nodes that users
connect, and no user is given something that has to be taken back later.
"""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

import numpy as np

from nova_fairness.decide import array_policy
from nova_fairness.decide import beside_exempt
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide.policies import feedback
from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

NEAR = 0.05
"""Distance of a weight from its end (natural logarithm) that it goes at
once."""

ACTIVE = 0.1
"""VMs whose vCPUs want less than this part of what vCPUs of their node want on
average, and that lack nothing, do not count: idle VMs must not hold back the
weights of busy ones. The case is 20 VMs of 16 vCPUs beside 5 of one."""

EVEN = 0.005
"""Where no weight is to be further from neutral (natural logarithm), all are
equal, and the node is left alone."""

CLEARLY_OFF = 0.2
"""Noise alone never makes a kernel's service differ so much (natural
logarithm) from the weight."""

FARTHEST_OFF = 1.5
"""Largest correction (natural logarithm) of a kernel's service."""

STILL_WAITS = 0.95
"""A VM that has more than this part of its wants does not show what service
its weight yields."""

Scalars = usage_model.Scalars
Mask = resources.Mask

_CPU, _TIME = decide_foresight.CPU, decide_foresight.CPU_TIME


class ForesightPolicy(feedback.FeedbackPolicy):
    """Goes to the fair allocation of the CPU; feedback for all else.

    The numbers were chosen by experiments; see the contributors' page on
    evidence.
    """

    description: ClassVar[str] = (
        'Works out from what users want on all nodes what is fair, and goes'
        ' there at once; feedback for all but the CPU.'
    )

    FIELDS: ClassVar[Mapping[str, array_policy.MemoryField]] = {
        **feedback.FeedbackPolicy.FIELDS,
        'offset': array_policy.MemoryField(array_policy.Per.VM, 0.0),
        'off': array_policy.MemoryField(array_policy.Per.VM, 0.0),
    }

    uses_foresight: ClassVar[bool] = True

    part: float = 0.7
    """Of the way to the end that is gone in a round."""

    largest: float = 4.0
    """Step of a weight in a round, a factor."""

    correction: float = 0.5
    """Part of what kernels give otherwise that is made good in a round."""

    def decide(
        self,
        crowd: array_policy.Crowd,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        """Decide the CPU by foresight where something is known of others."""
        views = _useful(crowd.foresight)
        foreseen = np.zeros(crowd.nodes, dtype=np.bool_)
        for view in views:
            foreseen[view.deciding] = True
        # Of what else a node is short the model knows nothing, and who waits
        # for the disk has no use for the CPU that it would give him.
        foreseen &= ~np.delete(crowd.contended, _CPU, axis=1).any(axis=1)
        contended = crowd.contended.copy()
        contended[foreseen, _CPU] = False
        weights, found = super().decide(
            dataclasses.replace(crowd, contended=contended),
            previous,
            memory,
            elapsed_s,
        )
        kept = {
            **found,
            'offset': memory['offset'].copy(),
            'off': np.zeros_like(memory['off']),
        }
        for view in views:
            # Where nobody waits, whatever the model says, weights stay.
            waiting = (foreseen & crowd.contended[:, _CPU])[view.deciding]
            chosen = view.deciding[waiting]
            rows = np.flatnonzero(np.isin(crowd.node, chosen))
            if rows.size and crowd.foresight is not None:
                scene = _Scene.of(crowd, crowd.foresight, view, rows, previous)
                off, before = scene.off(), memory['off'][rows]
                kept['off'][rows] = np.where(np.isfinite(off), off, 0.0)
                off = _lasting(off, before)
                offset = self._corrected(scene, off, memory['offset'][rows])
                weights[rows, _CPU] = np.exp(self._gone(scene, offset))
                kept['offset'][rows] = offset
        return weights, kept

    def _corrected(
        self, scene: '_Scene', off: Scalars, offset: Scalars
    ) -> Scalars:
        """Offsets against kernels that do not divide as the weights ask."""
        step = np.where(np.isfinite(off), -off - offset, 0.0)
        moved = offset + self.correction * step
        # Where nobody is to have more than others, nothing is steered, unless
        # the kernel is clearly off: noise alone moves no weight.
        every = np.ones(len(offset), dtype=np.bool_)
        steered = scene.largest(every, np.abs(scene.aim)) > EVEN
        steered |= scene.largest(scene.tells, np.abs(off)) > CLEARLY_OFF
        moved = np.where(steered[scene.node], moved, 0.0)
        return np.asarray(moved.clip(-FARTHEST_OFF, FARTHEST_OFF))

    def _gone(self, scene: '_Scene', offset: Scalars) -> Scalars:
        """Logarithms of the new weights, (p,)."""
        active = scene.doing > ACTIVE * scene.average()
        counts = scene.short & (active | scene.tells)
        goal = scene.centred(counts, scene.aim + offset)
        move = np.where(scene.short, goal - scene.log, 0.0)
        # Who has next to nothing to do comes back to no more than they had.
        move = np.where(counts, move, np.minimum(move, 0.0))
        farthest = scene.largest(counts, np.abs(move))
        limit = np.log(self.largest)
        part = np.where(farthest > NEAR, self.part, 1.0)
        part = np.minimum(part, limit / farthest.clip(min=1e-9))
        step = (part[scene.node] * move).clip(-limit, limit)
        return np.asarray(scene.log + step)


def _lasting(off: Scalars, before: Scalars) -> Scalars:
    """Leave out offsets of one interval only, (p,); NaN as in ``off``.

    A user that rested for a part of an interval lacks nothing.
    """
    least = np.where(np.abs(off) < np.abs(before), off, before)
    least = np.where(off * before < 0, 0.0, least)
    return np.where(np.isfinite(off), least, np.nan)


def _useful(
    foresight: foresight_model.Foresight | None,
) -> list[foresight_model.SharedView]:
    """The views whose end was found."""
    return [
        view
        for view in (() if foresight is None else foresight.views)
        if len(view.knowledge.node)
        and view.end.sharpness <= decide_foresight.SHARP
    ]


@dataclasses.dataclass(frozen=True, eq=False)
class _Scene:
    """The VMs of nodes that know the same.

    :ivar node: (p,) index of each VM's node among them.
    :ivar nodes: their number.
    :ivar log: (p,) logarithms of the weights in force.
    :ivar aim: (p,) logarithms of the weights at the end.
    :ivar short: (p,) on a node whose VMs want more than it has.
    :ivar gets: (p,) use of each for its size and weight, a logarithm.
    :ivar tells: (p,) whether that shows the service that its weight yields.
    :ivar vcpus: (p,) >= 1.
    :ivar doing: (p,) CPUs that each wants.
    :ivar reach: how far from neutral a weight can be, a logarithm.
    :ivar fixed: (m,) nodes on which a VM is exempt: a common factor is not
        without effect there.
    """

    node: usage_model.Indices
    nodes: int
    log: Scalars
    aim: Scalars
    short: Mask
    gets: Scalars
    tells: Mask
    vcpus: Scalars
    doing: Scalars
    reach: float
    fixed: Mask

    @classmethod
    def of(
        cls,
        crowd: array_policy.Crowd,
        foresight: foresight_model.Foresight,
        view: foresight_model.SharedView,
        rows: usage_model.Indices,
        previous: allocation.Weights,
    ) -> '_Scene':
        """Pick the rows, and what is foreseen for them."""
        ratio = float(foresight.ratio[_CPU])
        end = view.end
        node = np.searchsorted(view.deciding, crowd.node[rows])
        place = view.place[node]
        used = foresight.used[rows, _TIME]
        wanted = foresight.wanted[rows, _TIME]
        log = np.log(previous[rows, _CPU])
        short = end.short[place]
        tells = short & (used > 0) & (used < STILL_WAITS * wanted)
        part = np.where(tells, used, 1.0) / crowd.vcpus[rows]
        cells = view.knowledge.cells_of(place, foresight.user[rows])
        reach = np.log(ratio) / 2
        vcpus = crowd.vcpus[rows].astype(np.float64)
        aim, exempt = end.log[cells], foresight.exempt[rows]
        fixed = np.bincount(node[exempt], minlength=len(view.deciding)) > 0
        beside = fixed[node]
        if beside.any():
            known, cell = np.unique(cells[beside], return_inverse=True)
            aim[beside] = beside_exempt.aimed(
                node[beside],
                cell,
                aim[beside],
                wanted[beside],
                vcpus[beside],
                end.due[known],
                exempt[beside],
                reach,
            )
        return cls(
            node=node,
            nodes=len(view.deciding),
            log=log,
            aim=aim,
            short=short,
            gets=np.log(part) - log,
            tells=tells,
            vcpus=vcpus,
            doing=wanted / view.knowledge.one_cpu[place],
            reach=reach,
            fixed=fixed,
        )

    def average(self) -> Scalars:
        """Average want of VMs of that size on their node, (p,)."""
        count = np.bincount(self.node, self.vcpus, self.nodes)
        total = np.bincount(self.node, self.doing, self.nodes)
        part = total / np.maximum(count, 1.0)
        return np.asarray(part[self.node] * self.vcpus)

    def off(self) -> Scalars:
        """Compare what VMs get for their weights with the others of the node.

        :returns: (p,) logarithms; NaN for who does not show it.
        """
        count = np.bincount(self.node[self.tells], minlength=self.nodes)
        total = np.bincount(
            self.node[self.tells], self.gets[self.tells], self.nodes
        )
        mean = total / np.maximum(count, 1)
        return np.where(self.tells, self.gets - mean[self.node], np.nan)

    def centred(self, counts: Mask, goal: Scalars) -> Scalars:
        """Shift the goals of nodes on which some are out of bounds.

        A common factor changes no share, unless a VM is exempt.
        """
        high, low = (np.full(self.nodes, -np.inf) for _ in range(2))
        np.maximum.at(high, self.node[counts], goal[counts])
        np.maximum.at(low, self.node[counts], -goal[counts])
        out = (np.maximum(high, low) > self.reach) & ~self.fixed
        middle = np.where(out, high, 0.0) - np.where(out, low, 0.0)
        return np.asarray(goal - middle[self.node] / 2)

    def largest(self, counts: Mask, values: Scalars) -> Scalars:
        """Each node's largest value, 0 where there is none."""
        largest = np.zeros(self.nodes)
        np.maximum.at(largest, self.node[counts], values[counts])
        return largest
