# SPDX-License-Identifier: Apache-2.0

"""Policy that sets the weights of the max-min fair division of CPUs.

Every node computes this division from the wants of users on all nodes. In it
users who compete are equally heavy, as far as weights reach. If the node's own
kernel gives VMs more or less than that, the node corrects their weights. The
number of rounds does not grow with the number of nodes, and no user gets CPU
time that the next rounds take away again.
"""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

import numpy as np

from nova_fairness.decide import array_policy
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.decide.policies import feedback
from nova_fairness.model import allocation
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import beside_exempt

NEAR = 0.05
"""Largest distance of a weight from its target (natural logarithm) that is
made in one round."""

ACTIVE = 0.1
"""Part of the average want of a vCPU on the node. VMs whose vCPUs want less,
and that lack nothing, do not count when weights are centred. Otherwise idle
VMs would limit the weights of busy VMs. The case is 20 VMs of 16 vCPUs beside
5 VMs of one."""

EVEN = 0.005
"""Largest distance from neutral (natural logarithm) of weights that count as
equal. If all weights of a node are equal, the node is not corrected."""

CLEARLY_OFF = 0.2
"""Difference between a VM's CPU time and its weight (natural logarithm) that
noise alone never makes."""

FARTHEST_OFF = 1.5
"""Largest correction of a weight (natural logarithm)."""

STILL_WAITS = 0.95
"""Part of its wants. The CPU time of a VM that has more than this part does
not show how much its weight gives."""

Scalars = usage_model.Scalars
Mask = resources.Mask

_CPU, _TIME = decide_foresight.CPU, decide_foresight.CPU_TIME


class ForesightPolicy(feedback.FeedbackPolicy):
    """Sets the weights of the fair division of CPUs; the rest by feedback.

    The numbers were chosen by experiments; see the contributors' page on
    evidence.
    """

    description: ClassVar[str] = (
        'Works out from what users want on all nodes what is fair, and goes'
        ' there at once; feedback for all but the CPU.'
    )

    FIELDS: ClassVar[Mapping[str, array_policy.MemoryField]] = {
        **feedback.FeedbackPolicy.FIELDS,
        'offset': array_policy.MemoryField(array_policy.MemoryScope.VM, 0.0),
        'off': array_policy.MemoryField(array_policy.MemoryScope.VM, 0.0),
    }

    uses_foresight: ClassVar[bool] = True

    part: float = 0.7
    """Part of the distance to the target that is made in a round."""

    largest: float = 4.0
    """Largest factor by which a weight changes in a round."""

    correction: float = 0.5
    """Part of the kernel's error that is corrected in a round."""

    def decide(
        self,
        crowd: array_policy.SituationArrays,
        previous: allocation.Weights,
        memory: array_policy.Memories,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, array_policy.Memories]:
        """Decide CPUs of nodes with a division; the rest by feedback."""
        views = _usable_views(crowd.foresight)
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
                scene = _SteeredVms.of(
                    crowd, crowd.foresight, view, rows, previous
                )
                off, before = scene.kernel_errors(), memory['off'][rows]
                kept['off'][rows] = np.where(np.isfinite(off), off, 0.0)
                off = _lasting_errors(off, before)
                offset = self._corrections(scene, off, memory['offset'][rows])
                weights[rows, _CPU] = np.exp(self._new_weights(scene, offset))
                kept['offset'][rows] = offset
        return weights, kept

    def _corrections(
        self, scene: '_SteeredVms', off: Scalars, offset: Scalars
    ) -> Scalars:
        """Return corrections for kernels that do not divide by weights, (p,).

        :param off: (p,) error of the kernel for each VM; NaN if unknown.
        :param offset: (p,) corrections of the last round.
        """
        step = np.where(np.isfinite(off), -off - offset, 0.0)
        moved = offset + self.correction * step
        # Where nobody is to have more than others, nothing is steered, unless
        # the kernel is clearly off: noise alone moves no weight.
        every = np.ones(len(offset), dtype=np.bool_)
        steered = scene.largest_by_node(every, np.abs(scene.target)) > EVEN
        steered |= (
            scene.largest_by_node(scene.lacks_cpu, np.abs(off)) > CLEARLY_OFF
        )
        moved = np.where(steered[scene.node], moved, 0.0)
        return np.asarray(moved.clip(-FARTHEST_OFF, FARTHEST_OFF))

    def _new_weights(self, scene: '_SteeredVms', offset: Scalars) -> Scalars:
        """Return logarithms of the new weights, (p,)."""
        active = scene.wanted_cpus > ACTIVE * scene.average_want()
        counts = scene.node_lacks & (active | scene.lacks_cpu)
        goal = scene.centre_targets(counts, scene.target + offset)
        move = np.where(scene.node_lacks, goal - scene.log, 0.0)
        # Who has next to nothing to do comes back to no more than they had.
        move = np.where(counts, move, np.minimum(move, 0.0))
        farthest = scene.largest_by_node(counts, np.abs(move))
        limit = np.log(self.largest)
        part = np.where(farthest > NEAR, self.part, 1.0)
        part = np.minimum(part, limit / farthest.clip(min=1e-9))
        step = (part[scene.node] * move).clip(-limit, limit)
        return np.asarray(scene.log + step)


def _lasting_errors(off: Scalars, before: Scalars) -> Scalars:
    """Return the part of errors that two intervals in a row have, (p,).

    A user that rested for a part of one interval lacks nothing.

    :param off: (p,) errors of the newest interval; NaN if unknown.
    :param before: (p,) errors of the interval before.
    """
    least = np.where(np.abs(off) < np.abs(before), off, before)
    least = np.where(off * before < 0, 0.0, least)
    return np.where(np.isfinite(off), least, np.nan)


def _usable_views(
    foresight: foresight_model.Foresight | None,
) -> list[foresight_model.SharedView]:
    """Return the views whose division is sharp enough."""
    return [
        view
        for view in (() if foresight is None else foresight.views)
        if len(view.knowledge.node)
        and view.end.sharpness <= decide_foresight.SHARP
    ]


@dataclasses.dataclass(frozen=True, eq=False)
class _SteeredVms:
    """VMs of nodes that decide by the same division.

    :ivar node: (p,) index of each VM's node.
    :ivar nodes: number of these nodes.
    :ivar log: (p,) logarithms of the weights in force.
    :ivar target: (p,) logarithms of the target weights.
    :ivar node_lacks: (p,) whether VMs of the node want more than it has.
    :ivar log_rate: (p,) CPU time per vCPU and weight, a logarithm.
    :ivar lacks_cpu: (p,) whether the VM lacks CPU time, so that ``log_rate``
        shows how much its weight gives.
    :ivar vcpus: (p,) vCPUs, >= 1.
    :ivar wanted_cpus: (p,) CPUs that each VM wants.
    :ivar reach: largest distance of a weight from neutral, a logarithm.
    :ivar fixed: (m,) whether a VM of the node is exempt. There a common factor
        of all other weights has an effect.
    """

    node: usage_model.Indices
    nodes: int
    log: Scalars
    target: Scalars
    node_lacks: Mask
    log_rate: Scalars
    lacks_cpu: Mask
    vcpus: Scalars
    wanted_cpus: Scalars
    reach: float
    fixed: Mask

    @classmethod
    def of(
        cls,
        crowd: array_policy.SituationArrays,
        foresight: foresight_model.Foresight,
        view: foresight_model.SharedView,
        rows: usage_model.Indices,
        previous: allocation.Weights,
    ) -> '_SteeredVms':
        """Return the VMs with these indices, and their target weights."""
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
            aim[beside] = beside_exempt.weights_for_amounts(
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
            target=aim,
            node_lacks=short,
            log_rate=np.log(part) - log,
            lacks_cpu=tells,
            vcpus=vcpus,
            wanted_cpus=wanted / view.knowledge.one_cpu[place],
            reach=reach,
            fixed=fixed,
        )

    def average_want(self) -> Scalars:
        """Return the want of each VM if all vCPUs of its node wanted the
        same, (p,) CPUs.
        """
        count = np.bincount(self.node, self.vcpus, self.nodes)
        total = np.bincount(self.node, self.wanted_cpus, self.nodes)
        part = total / np.maximum(count, 1.0)
        return np.asarray(part[self.node] * self.vcpus)

    def kernel_errors(self) -> Scalars:
        """Return how far the kernel's division differs from the weights, (p,).

        The CPU time per vCPU and weight of each VM is compared with the mean
        of its node.

        :returns: logarithms; NaN for VMs that lack nothing.
        """
        count = np.bincount(self.node[self.lacks_cpu], minlength=self.nodes)
        total = np.bincount(
            self.node[self.lacks_cpu],
            self.log_rate[self.lacks_cpu],
            self.nodes,
        )
        mean = total / np.maximum(count, 1)
        return np.where(
            self.lacks_cpu, self.log_rate - mean[self.node], np.nan
        )

    def centre_targets(self, counts: Mask, goal: Scalars) -> Scalars:
        """Shift the targets of each node on which some exceed the bounds.

        A common factor changes no share, unless a VM is exempt.

        :param counts: (p,) VMs that decide the shift.
        :param goal: (p,) logarithms of target weights.
        """
        high, low = (np.full(self.nodes, -np.inf) for _ in range(2))
        np.maximum.at(high, self.node[counts], goal[counts])
        np.maximum.at(low, self.node[counts], -goal[counts])
        out = (np.maximum(high, low) > self.reach) & ~self.fixed
        middle = np.where(out, high, 0.0) - np.where(out, low, 0.0)
        return np.asarray(goal - middle[self.node] / 2)

    def largest_by_node(self, counts: Mask, values: Scalars) -> Scalars:
        """Return the largest value of each node, (m,); at least 0.

        :param counts: (p,) VMs that are considered.
        """
        largest = np.zeros(self.nodes)
        np.maximum.at(largest, self.node[counts], values[counts])
        return largest
