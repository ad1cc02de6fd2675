# SPDX-License-Identifier: Apache-2.0

"""Planner that empties hosts one after another, the least used first."""

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves

_ALONE = waves.MoveConcurrency(1, 1)


def consolidate(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
) -> rules_module.ConsolidationPlan:
    """Plan moves that empty hosts, the least used first (Baadal)."""
    emptying = _EmptyingSearch(
        layout_module.HostLayout(snapshot, rules.rule), rules
    )
    return emptying.plan()


class _EmptyingSearch:
    """Empties hosts until no further host can be emptied."""

    def __init__(
        self,
        layout: layout_module.HostLayout,
        rules: rules_module.ConsolidationRules,
    ) -> None:
        self._layout, self._rules = layout, rules
        self._parts: list[list[waves.Step]] = []

    def plan(self) -> rules_module.ConsolidationPlan:
        """Return the moves that empty hosts."""
        while self._try_each_host():
            pass
        found = rules_module.plan_from_layout(
            self._layout, self._rules, self._parts
        )
        return found or rules_module.ConsolidationPlan((), (0, 0))

    def _try_each_host(self) -> bool:
        """Try to empty each host once.

        :returns: whether any server was moved.
        """
        emptied = [self._try_to_empty(row) for row in self._emptiable_hosts()]
        if any(emptied) or not self._rules.partial:
            return any(emptied)
        given = [
            self._move_to_fuller_hosts(row) for row in self._emptiable_hosts()
        ]
        return any(given)

    def _emptiable_hosts(self) -> list[int]:
        """Return the rows of hosts that may be emptied, the least used first.

        Hosts are sorted by their use plus the average use of their servers,
        because small servers fit more easily on other hosts (Baadal).
        """
        layout = self._layout
        count = np.bincount(layout.at, minlength=len(layout.hosts.names))
        load = layout.load()
        weight = load + load / np.maximum(count, 1)
        rows = np.flatnonzero(layout.targets & (count > 0))
        order = np.argsort(weight[rows], kind='stable')
        return [int(row) for row in rows[order]]

    def _try_to_empty(self, row: int) -> bool:
        """Empty a host if other hosts have room for all its servers.

        :returns: whether it was emptied.
        """
        layout = self._layout
        items = layout.on(row)
        amounts = layout.amounts[items].sum(axis=0)
        if not layout.may_move[items].all():
            return False
        if (layout.used[:, row] > amounts).any():
            return False
        others = layout.targets
        others[row] = False
        room = np.maximum(layout.free[:, others], 0).sum(axis=1)
        if not others.any() or (amounts > room).any():
            return False
        before, mark = layout.at.copy(), layout.mark()
        for n in items:
            layout.put(int(n), layout_module.NOWHERE)
        settled = displacement.place_with_displacement(
            layout, map(int, items), others, self._rules.depth
        )
        if not settled:
            layout.back(mark)
            return False
        return self._keep_if_cheap(mark, before)

    def _move_to_fuller_hosts(self, row: int) -> bool:
        """Move servers off a host to hosts with a higher load that have room
        for them.

        Each such move increases the sum of the squares of loads, so that the
        process ends.
        """
        layout = self._layout
        before, mark = layout.at.copy(), layout.mark()
        for n in layout.on(row):
            load = layout.load()
            fuller = layout.targets & (load >= load[row])
            fuller[row] = False
            target = layout.find(int(n), fuller)
            if target != layout_module.NOWHERE:
                layout.put(int(n), target)
        return self._keep_if_cheap(mark, before)

    def _keep_if_cheap(self, mark: int, before: layout_module.Rows) -> bool:
        """Keep the changes of the layout if they are cheap enough and can
        be executed; otherwise undo them.
        """
        layout = self._layout
        steps = waves.steps_between(before, layout.at)
        cost = sum(int(layout.cost[n]) for n, _ in steps)
        layout.back(mark)
        if not steps or self._rules.is_dear(cost):
            return False
        if waves.plan_waves(layout, steps, _ALONE) is None:
            return False
        for n, row in steps:
            layout.put(n, row)
        self._parts.append(steps)
        return True
