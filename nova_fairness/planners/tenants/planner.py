# SPDX-License-Identifier: Apache-2.0

"""Planner that moves servers so that the owner with the lowest level gets more
CPU time.

Weights divide a host; they do not help an owner on a crowded host while other
hosts have room. So servers of any owner move one after the other: each time
the server whose move gives the owner with the lowest level the largest gain,
less the cost of the move. No owner who gets less by a move ends as low as the
helped owner was. So the sorted levels of all owners only grow, and servers do
not move back and forth.
"""

import dataclasses

import numpy as np

from nova_fairness.model import tenants
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves
from nova_fairness.planners.tenants import cpu_levels

_LEAST = 0.005
"""Smallest rise of a level that a move must cause."""

_MB = 1024.0
_CONCURRENCY = waves.MoveConcurrency()


@dataclasses.dataclass(frozen=True, slots=True)
class TenantRules:
    """Limits of a plan, chosen by operators.

    :ivar margin: smallest rise of an owner's level by all moves for this owner
        together, 0 to 1.
    :ivar price: additional rise that each move must cause, per GiB of memory
        that it sends, >= 0.
    :ivar hold_s: seconds for which a server stays after a move.
    :ivar seen_s: seconds for which an agent must have measured a server before
        it is moved.
    :ivar most: largest number of moves of a plan; ``None`` for any number.
    :ivar effort: largest number of servers that are tried; then the plan
        contains the moves found so far.
    :ivar concurrency: largest number of simultaneous moves.
    """

    margin: float = 0.05
    price: float = 0.0005
    hold_s: float = 3600.0
    seen_s: float = 600.0
    most: int | None = 20
    effort: int = 20_000
    concurrency: waves.MoveConcurrency = _CONCURRENCY


USUAL = TenantRules()


@dataclasses.dataclass(frozen=True, slots=True)
class Help:
    """An owner who gets more CPU time.

    :ivar owner: name of the owner.
    :ivar servers: UUIDs of servers that move for this owner, of any owner.
    :ivar level: level of the owner before and after the moves.
    """

    owner: str
    servers: tuple[str, ...]
    level: tuple[float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class TenantPlan:
    """Moves, and the levels of owners before and after them.

    :ivar plan: the moves.
    :ivar helped: owners, in the order in which they were helped.
    :ivar worst: lowest level of an owner before and after; 1 if no owner lacks
        CPU time.
    :ivar is_whole: whether the search was complete.
    """

    plan: rules_module.ConsolidationPlan
    helped: tuple[Help, ...]
    worst: tuple[float, float]
    is_whole: bool = True


def plan(
    given: tenants.Tenants, now: float, rules: TenantRules = USUAL
) -> TenantPlan:
    """Plan moves that give more CPU time to the owners with the lowest levels.

    :param given: the cloud and the CPU time that servers want.
    :param now: seconds of the epoch.
    :param rules: bounds of operators.
    """
    layout = layout_module.HostLayout(given.cloud, weighers.emptiest)
    return _HelpSearch(given, layout, now, rules).plan()


class _HelpSearch:
    """Searches moves for one owner after another."""

    def __init__(
        self,
        given: tenants.Tenants,
        layout: layout_module.HostLayout,
        now: float,
        rules: TenantRules,
    ) -> None:
        self._rules = rules
        self._field = cpu_levels.CpuLevels(given, layout)
        self._may = layout.may_move & (self._field.owner >= 0)
        for n in np.flatnonzero(self._may):
            want = given.wants[layout.items[n].uuid]
            self._may[n] = (
                now - want.moved_at >= rules.hold_s
                and want.seen_s >= rules.seen_s
            )
        self._takes = layout.hosts.takes & (self._field.capacity > 0)
        self._left = rules.effort
        self._parts: list[list[waves.Step]] = []
        self._helped: list[Help] = []

    def plan(self) -> TenantPlan:
        """Search moves until no further move helps an owner."""
        before = self._lowest_level()
        while self._try_each_owner():
            pass
        layout, after = self._field.layout, self._lowest_level()
        made = rules_module.plan_from_layout(
            layout,
            rules_module.ConsolidationRules(
                concurrency=self._rules.concurrency
            ),
            self._parts,
        )
        nothing = rules_module.ConsolidationPlan(
            (), (int(layout.busy.sum()),) * 2
        )
        return TenantPlan(
            made or nothing,
            tuple(self._helped) if made else (),
            (before, after if made else before),
            self._left > 0,
        )

    def _lowest_level(self) -> float:
        return float(self._field.levels.min(initial=1.0))

    def _try_each_owner(self) -> bool:
        """Try each owner once, the one with the lowest level first.

        :returns: whether any server was moved.
        """
        tried: set[int] = set()
        is_changed = False
        while self._may_move_more() and self._left > 0:
            levels = self._field.levels
            order = np.argsort(levels, kind='stable')
            least = max(self._rules.margin, _LEAST)
            owner = next(
                (
                    int(each)
                    for each in order
                    if each not in tried and levels[each] <= 1.0 - least
                ),
                None,
            )
            if owner is None:
                break
            tried.add(owner)
            is_changed |= self._help_owner(owner)
        return is_changed

    def _may_move_more(self) -> bool:
        most = self._rules.most
        return most is None or sum(map(len, self._parts)) < most

    def _help_owner(self, owner: int) -> bool:
        """Move servers for an owner; undo the moves if they gain too little.

        :returns: whether the moves are kept.
        """
        field, layout = self._field, self._field.layout
        begun, mark = float(field.levels[owner]), layout.mark()
        first = len(self._parts)
        while self._may_move_more() and self._left > 0:
            step = self._best_move(owner)
            if step is None:
                break
            field.move(*step)
            self._parts.append([step])
        reached = float(field.levels[owner])
        steps = [step for part in self._parts[first:] for step in part]
        if steps and reached - begun >= self._rules.margin:
            uuids = tuple(layout.items[n].uuid for n, _ in steps)
            name = field.owners[owner]
            self._helped.append(Help(name, uuids, (begun, reached)))
            return True
        del self._parts[first:]
        field.back(mark)
        return False

    def _best_move(self, owner: int) -> waves.Step | None:
        """Return the move with the largest gain of an owner minus its cost;
        ``None`` if there is none.
        """
        field = self._field
        best, most = None, 0.0
        hosts = field.lacking(owner)
        near = self._may & np.isin(field.layout.at, hosts)
        for n in np.flatnonzero(near & (field.wanted > 0)):
            least = self._least_rise(int(n))
            if field.most(int(n), owner) < least or self._left <= 0:
                continue
            self._left -= 1
            row, gain = self._best_target(int(n), owner)
            if gain >= least and gain - least > most + _LEAST * 1e-6:
                best, most = (int(n), row), gain - least
        return best

    def _least_rise(self, n: int) -> float:
        """Return the smallest rise of a level that a move of an item must
        cause.
        """
        cost = float(self._field.layout.cost[n]) / _MB
        return _LEAST + self._rules.price * cost

    def _best_target(self, n: int, owner: int) -> tuple[int, float]:
        """Return the best host for an item, and the gain of the move.

        The gain is the rise from the owner's level to its new level, or to the
        new level of an owner who gets less and ends lower.
        """
        field = self._field
        allowed = self._takes.copy()
        allowed[field.layout.at[n]] = False
        rows = field.layout.fitting(n, allowed)
        if not len(rows):
            return layout_module.NOWHERE, 0.0
        found = field.outcomes(n, owner, rows)
        rise = np.minimum(found.level, found.lowest) - field.levels[owner]
        best = int(rise.argmax())
        return int(found.rows[best]), float(rise[best])
