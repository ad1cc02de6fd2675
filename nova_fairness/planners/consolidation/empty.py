# SPDX-License-Identifier: Apache-2.0

"""One host is emptied that an operator named."""

from nova_fairness.model import cluster
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import rules as rules_module


def empty(
    snapshot: cluster.ClusterSnapshot,
    host: str,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
) -> rules_module.ConsolidationPlan:
    """Move what may move off a host, to hosts in use if they have room.

    If not all of it finds room, as much as does is moved.

    :param host: its name; something may run there that may not move.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    busy = int(layout.busy.sum())
    row = layout.hosts.names.index(host)
    for allowed in (layout.targets, layout.hosts.takes.copy()):
        allowed[row] = False
        if _settled(layout, row, allowed, rules):
            found = rules_module.made(layout, rules)
            if found is not None:
                return found
        layout.back(0)
    for make_room in (True, False):
        _give(layout, row, allowed)
        if make_room:
            _crowd_out(layout, row, allowed, rules)
        found = rules_module.made(layout, rules)
        if found is not None:
            return found
        layout.back(0)
    return rules_module.ConsolidationPlan((), (busy, busy))


def _settled(
    layout: layout_module.HostLayout,
    row: int,
    allowed: layout_module.Marks,
    rules: rules_module.ConsolidationRules,
) -> bool:
    """Put all that may leave a host elsewhere, or nothing."""
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in items:
        layout.put(n, layout_module.NOWHERE)
    return displacement.settle(layout, items, allowed, rules.depth)


def _give(
    layout: layout_module.HostLayout, row: int, allowed: layout_module.Marks
) -> None:
    """Put what finds room elsewhere, the largest first."""
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in displacement.largest_first(layout, items, allowed):
        target = layout.find(n, allowed)
        if target != layout_module.NOWHERE:
            layout.put(n, target)


def _crowd_out(
    layout: layout_module.HostLayout,
    row: int,
    allowed: layout_module.Marks,
    rules: rules_module.ConsolidationRules,
) -> None:
    """Put one after the other elsewhere for which smaller ones make room."""
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in displacement.largest_first(layout, items, allowed):
        mark = layout.mark()
        layout.put(n, layout_module.NOWHERE)
        if not displacement.settle(layout, [n], allowed, rules.depth):
            layout.back(mark)
