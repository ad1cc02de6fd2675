# SPDX-License-Identifier: Apache-2.0

"""Servers move so that fewer hosts are needed, or a request fits.

A plan is made of the snapshot alone, and of the state that it leads to it
makes none: nothing goes to and fro. Servers are moved where capacity, units,
traits, zones, aggregates and server groups let them; those that may not be
moved stay, with whatever else hosts hold.
"""

from collections.abc import Iterator

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.consolidation import displacing
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import moves as moves_module
from nova_fairness.planners.consolidation import plans
from nova_fairness.planners.consolidation import repacking

_ALONE = moves_module.AtOnce(1, 1)


def consolidate(
    snapshot: cluster.ClusterSnapshot, rules: plans.Rules = plans.USUAL
) -> plans.Plan:
    """Empty hosts, the least used first (Baadal)."""
    emptying = _Emptying(layout_module.Layout(snapshot, rules.rule), rules)
    return emptying.plan()


class _Emptying:
    """Empties hosts as long as one can be emptied."""

    def __init__(
        self, layout: layout_module.Layout, rules: plans.Rules
    ) -> None:
        self._layout, self._rules = layout, rules
        self._parts: list[list[moves_module.Step]] = []

    def plan(self) -> plans.Plan:
        """Moves that empty hosts."""
        while self._pass():
            pass
        found = plans.made(self._layout, self._rules, self._parts)
        return found or plans.Plan((), (0, 0))

    def _pass(self) -> bool:
        """Try every host once; tell whether anything was changed."""
        emptied = [self._empty(row) for row in self._victims()]
        if any(emptied) or not self._rules.partial:
            return any(emptied)
        given = [self._give(row) for row in self._victims()]
        return any(given)

    def _victims(self) -> list[int]:
        """Rows of hosts that may be emptied, the least used first.

        By what they use, and what a server of theirs uses on average: small
        ones find room more easily (Baadal).
        """
        layout = self._layout
        count = np.bincount(layout.at, minlength=len(layout.hosts.names))
        load = layout.load()
        weight = load + load / np.maximum(count, 1)
        rows = np.flatnonzero(layout.targets & (count > 0))
        order = np.argsort(weight[rows], kind='stable')
        return [int(row) for row in rows[order]]

    def _empty(self, row: int) -> bool:
        """Empty a host if all that it has can go elsewhere."""
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
        settled = displacing.settle(
            layout, map(int, items), others, self._rules.depth
        )
        if not settled:
            layout.back(mark)
            return False
        return self._kept(mark, before)

    def _give(self, row: int) -> bool:
        """Move what fuller hosts take off a host.

        The sum of the squares of loads only grows by it, so it ends.
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
        return self._kept(mark, before)

    def _kept(self, mark: int, before: layout_module.Rows) -> bool:
        """Keep what was changed if it is worth it and can be carried out."""
        layout = self._layout
        steps = moves_module.changed(before, layout.at)
        cost = sum(int(layout.cost[n]) for n, _ in steps)
        layout.back(mark)
        if not steps or self._rules.is_dear(cost):
            return False
        if moves_module.waves(layout, steps, _ALONE) is None:
            return False
        for n, row in steps:
            layout.put(n, row)
        self._parts.append(steps)
        return True


def rescue(
    snapshot: cluster.ClusterSnapshot,
    asked: request_model.Request,
    rules: plans.Rules = plans.USUAL,
) -> plans.Plan | None:
    """Make room for a request that fits nowhere.

    :param asked: that waits.
    :returns: moves after which it fits; ``None`` if there are none, or they
        are too dear.
    """
    layout = layout_module.Layout(snapshot, rules.rule)
    allowed = layout.hosts.takes
    shape, count = layout.hosts.shape(asked.demand), len(asked.servers)
    group = asked.group
    apart = None
    if group is not None:
        hosts = layout.hosts.rows(snapshot.members.get(group.uuid, ()))
        if group.rule is request_model.Rule.APART:
            apart = group
            layout.know(group, hosts)
        else:
            shape = layout.hosts.together([(asked.demand, count)])
            count = 1
            if len(hosts):
                allowed = np.isin(np.arange(len(allowed)), hosts) & allowed
    item = layout_module.item_of(asked.uuid, shape, apart, snapshot.classes)
    new = [layout.add(item) for _ in range(count)]
    mark = layout.mark()
    for is_settled in _settling(layout, new, allowed, rules.depth):
        plan = plans.made(layout, rules, detours=True) if is_settled else None
        if plan is not None and not rules.is_dear(plan.cost_mb):
            return plan
        layout.back(mark)
    return None


def _settling(
    layout: layout_module.Layout,
    new: list[int],
    allowed: layout_module.Marks,
    depth: displacing.Depth,
) -> Iterator[bool]:
    """Ways to find places, the one with the fewest moves first."""
    yield displacing.settle(layout, new, allowed, depth)
    for anew in range(2, depth.anew + 1):
        yield displacing.crowd(layout, new, allowed, anew)
    # Who must lie beside others cannot lie anywhere that is like their host.
    if depth.tight and (allowed == layout.hosts.takes).all():
        yield repacking.tighten(layout, new, allowed, depth.tight)
