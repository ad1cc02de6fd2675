# SPDX-License-Identifier: Apache-2.0

"""Limits of all consolidation goals, and the plan that results from a
changed layout.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.model import plans
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import waves as waves_module

_DEPTH = displacement.Depth()
_CONCURRENCY = waves_module.MoveConcurrency()


@dataclasses.dataclass(frozen=True, slots=True)
class ConsolidationRules:
    """Limits of a plan, chosen by operators.

    :ivar rule: chooses the host of a server among those with room.
    :ivar depth: limits of the search for a host.
    :ivar concurrency: largest number of simultaneous moves.
    :ivar dearest_mb: largest amount of memory that is sent to empty one host,
        or for one request, MB; ``None`` for no limit.
    :ivar partial: whether servers move off a host that cannot be emptied, to
        hosts with a higher load.
    :ivar spare: number of empty hosts that stay ready, >= 0.
    """

    rule: weighers.Rule = weighers.fullest
    depth: displacement.Depth = _DEPTH
    concurrency: waves_module.MoveConcurrency = _CONCURRENCY
    dearest_mb: int | None = None
    partial: bool = False
    spare: int = 0

    def is_dear(self, cost_mb: int) -> bool:
        """Whether moves send more memory than the limit."""
        return self.dearest_mb is not None and cost_mb > self.dearest_mb


USUAL = ConsolidationRules()


@dataclasses.dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """Moves, with the hosts in use before and after them.

    :ivar moves: moves in the order in which they are executed.
    :ivar busy: number of hosts in use before and after the moves.
    :ivar off: names of empty hosts that are not needed after the moves,
        without the spare hosts.
    :ivar is_whole: whether the search was complete; ``False`` if its time
        limit ended it.
    """

    moves: tuple[plans.Move, ...]
    busy: tuple[int, int]
    off: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def cost_mb(self) -> int:
        """Return the memory that all moves send, MB."""
        return sum(each.cost_mb for each in self.moves)


def plan_from_layout(
    layout: layout_module.HostLayout,
    rules: ConsolidationRules,
    parts: Sequence[Sequence[waves_module.Step]] = (),
    detours: bool = False,
) -> ConsolidationPlan | None:
    """Return the plan that leads from the first state of a layout to its
    present state.

    :param layout: layout with changes; afterwards it is in its first state.
    :param parts: the same moves in an order in which each has room; a server
        may move twice in it.
    :param detours: see :func:`.waves.plan_waves`.
    :returns: ``None`` if no order of the moves is found.
    """
    after, busy_after = layout.at.copy(), int(layout.busy.sum())
    off = _hosts_to_power_off(layout, rules.spare)
    layout.back(0)
    steps = waves_module.steps_between(layout.at, after)
    found = waves_module.plan_waves(layout, steps, rules.concurrency, detours)
    if found is None:
        found = _waves_of_parts(layout, parts, rules)
    if found is None:
        return None
    busy = int(layout.busy.sum()), busy_after
    return ConsolidationPlan(
        waves_module.moves_of_waves(layout, found), busy, off
    )


def _waves_of_parts(
    layout: layout_module.HostLayout,
    parts: Sequence[Sequence[waves_module.Step]],
    rules: ConsolidationRules,
) -> list[list[waves_module.Step]] | None:
    found: list[list[waves_module.Step]] = []
    for steps in parts:
        waves = waves_module.plan_waves(layout, steps, rules.concurrency)
        if waves is None:
            break
        found += waves
        for n, row in steps:
            layout.put(n, row)
    is_whole = bool(parts) and waves is not None
    layout.back(0)
    if not is_whole:
        return None
    # The best steps, one by one, may move a server back to its first host.
    return waves_module.without_detours(layout, found, rules.concurrency)


def _hosts_to_power_off(
    layout: layout_module.HostLayout, spare: int
) -> tuple[str, ...]:
    empty = np.flatnonzero(~layout.busy & layout.hosts.takes)
    # The largest hosts are kept ready: most requests fit on them.
    size = layout.hosts.capacity[:, empty].sum(axis=0)
    order = np.argsort(-size, kind='stable')
    return tuple(layout.hosts.names[row] for row in empty[order][spare:])
