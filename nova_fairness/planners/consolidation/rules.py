# SPDX-License-Identifier: Apache-2.0

"""Bounds of every goal, and the plan that a changed layout makes."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.model import plans
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import waves as waves_module

_DEPTH = displacement.Depth()
_AT_ONCE = waves_module.AtOnce()


@dataclasses.dataclass(frozen=True, slots=True)
class ConsolidationRules:
    """Bounds that operators choose.

    :ivar rule: chooses the host of a server among those with room.
    :ivar depth: how far room is made.
    :ivar at_once: how many moves run at the same time.
    :ivar dearest_mb: most memory that is sent to empty one host, or for one
        request, MB; ``None`` for any.
    :ivar partial: whether servers of a host that cannot be emptied move to
        fuller hosts as far as these take them.
    :ivar spare: hosts that are kept empty and ready, >= 0.
    """

    rule: weighers.Rule = weighers.fullest
    depth: displacement.Depth = _DEPTH
    at_once: waves_module.AtOnce = _AT_ONCE
    dearest_mb: int | None = None
    partial: bool = False
    spare: int = 0

    def is_dear(self, cost_mb: int) -> bool:
        """Whether that is more memory than may be sent."""
        return self.dearest_mb is not None and cost_mb > self.dearest_mb


USUAL = ConsolidationRules()


@dataclasses.dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """Moves, and their results.

    :ivar moves: in the order in which they are to be done.
    :ivar busy: number of hosts in use before and after.
    :ivar off: names of empty hosts that are not needed afterwards, beside
        those that are kept ready.
    :ivar is_whole: whether everything was tried; not if a search ended for
        want of time: then heuristics may have made the plan.
    """

    moves: tuple[plans.Move, ...]
    busy: tuple[int, int]
    off: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def cost_mb(self) -> int:
        """Memory that is sent, MB."""
        return sum(each.cost_mb for each in self.moves)


def made(
    layout: layout_module.HostLayout,
    rules: ConsolidationRules,
    parts: Sequence[Sequence[waves_module.Step]] = (),
    detours: bool = False,
) -> ConsolidationPlan | None:
    """The plan that leads to a layout from what it was at first.

    :param layout: is as at first afterwards.
    :param parts: the same moves in an order in which there is room for each;
        then a server may go twice.
    :param detours: see :func:`.waves.waves`.
    :returns: ``None`` if there is no order.
    """
    after, busy_after = layout.at.copy(), int(layout.busy.sum())
    off = _off(layout, rules.spare)
    layout.back(0)
    steps = waves_module.changed(layout.at, after)
    found = waves_module.waves(layout, steps, rules.at_once, detours)
    if found is None:
        found = _in_parts(layout, parts, rules)
    if found is None:
        return None
    busy = int(layout.busy.sum()), busy_after
    return ConsolidationPlan(waves_module.named(layout, found), busy, off)


def _in_parts(
    layout: layout_module.HostLayout,
    parts: Sequence[Sequence[waves_module.Step]],
    rules: ConsolidationRules,
) -> list[list[waves_module.Step]] | None:
    found: list[list[waves_module.Step]] = []
    for steps in parts:
        waves = waves_module.waves(layout, steps, rules.at_once)
        if waves is None:
            break
        found += waves
        for n, row in steps:
            layout.put(n, row)
    is_whole = bool(parts) and waves is not None
    layout.back(0)
    if not is_whole:
        return None
    # What was best step by step may lead a server back to where it was.
    return waves_module.straight(layout, found, rules.at_once)


def _off(layout: layout_module.HostLayout, spare: int) -> tuple[str, ...]:
    empty = np.flatnonzero(~layout.busy & layout.hosts.takes)
    # The largest are kept: they suit most requests.
    size = layout.hosts.capacity[:, empty].sum(axis=0)
    order = np.argsort(-size, kind='stable')
    return tuple(layout.hosts.names[row] for row in empty[order][spare:])
