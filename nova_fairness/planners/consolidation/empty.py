# SPDX-License-Identifier: Apache-2.0

"""Planner that empties one host, which an operator selected."""

from nova_fairness.model import cluster
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import rules as rules_module


def empty(
    snapshot: cluster.ClusterSnapshot,
    host: str,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
) -> rules_module.ConsolidationPlan:
    """Plan moves off a host, to hosts in use if these have room.

    If other hosts have no room for all servers, as many as possible are moved.

    :param host: name of the host; it may have servers that may not move.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    busy = int(layout.busy.sum())
    row = layout.hosts.names.index(host)
    for allowed in (layout.targets, layout.hosts.takes.copy()):
        allowed[row] = False
        if _place_all(layout, row, allowed, rules):
            found = rules_module.plan_from_layout(layout, rules)
            if found is not None:
                return found
        layout.back(0)
    for make_room in (True, False):
        _move_fitting(layout, row, allowed)
        if make_room:
            _move_by_displacement(layout, row, allowed, rules)
        found = rules_module.plan_from_layout(layout, rules)
        if found is not None:
            return found
        layout.back(0)
    return rules_module.ConsolidationPlan((), (busy, busy))


def _place_all(
    layout: layout_module.HostLayout,
    row: int,
    allowed: layout_module.Marks,
    rules: rules_module.ConsolidationRules,
) -> bool:
    """Put all movable items of a host on other hosts, or none of them.

    :returns: whether all of them are on other hosts.
    """
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in items:
        layout.put(n, layout_module.NOWHERE)
    return displacement.place_with_displacement(
        layout, items, allowed, rules.depth
    )


def _move_fitting(
    layout: layout_module.HostLayout, row: int, allowed: layout_module.Marks
) -> None:
    """Move each item off a host for which another host has room, the
    largest first.
    """
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in displacement.largest_first(layout, items, allowed):
        target = layout.find(n, allowed)
        if target != layout_module.NOWHERE:
            layout.put(n, target)


def _move_by_displacement(
    layout: layout_module.HostLayout,
    row: int,
    allowed: layout_module.Marks,
    rules: rules_module.ConsolidationRules,
) -> None:
    """Move the items of a host one by one; smaller items are displaced to
    make room.
    """
    items = [int(n) for n in layout.on(row) if layout.may_move[n]]
    for n in displacement.largest_first(layout, items, allowed):
        mark = layout.mark()
        layout.put(n, layout_module.NOWHERE)
        if not displacement.place_with_displacement(
            layout, [n], allowed, rules.depth
        ):
            layout.back(mark)
