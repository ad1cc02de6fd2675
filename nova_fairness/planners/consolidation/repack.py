# SPDX-License-Identifier: Apache-2.0

"""Planner that packs all servers from scratch, and chooses hosts so that few
servers move.

Several ways are tried: first fit decreasing, filling one host after the other,
patterns of servers that fill a host, and emptying one host after the other. Of
the packings with the fewest hosts for which an order of moves exists, the one
that sends the least memory is taken. It is not always the cheapest possible
one. Do this rarely, for example once a week (Baadal), since nearly all servers
may move.
"""

import collections
from collections.abc import Iterator
import dataclasses

import numpy as np

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import bin_filling
from nova_fairness.planners.consolidation import consolidate
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import optimum
from nova_fairness.planners.consolidation import patterns
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import utilisation
from nova_fairness.shares import programs

Rows = layout_module.Rows
Fractions = layout_module.Fractions
Marks = layout_module.Marks

_RULES = (weighers.fullest, weighers.best_fit, weighers.cosine)
_FILLS = (*bin_filling.FILLS, patterns.fill)


def repack(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules = rules_module.USUAL,
    search_s: float = 0.0,
) -> rules_module.ConsolidationPlan:
    """Plan to pack all servers from scratch, if that needs fewer hosts.

    No server moves if there is no order in which each finds room.

    :param search_s: seconds for which an integer program looks for fewer
        hosts, if fewer may be possible; for clouds of a few dozen servers. If
        the time is over before the search is complete, the best packing so far
        counts, and the plan is not whole.
    """
    layout = layout_module.HostLayout(snapshot, rules.rule)
    before, least = int(layout.busy.sum()), optimum.lower_bound(layout)
    nothing = rules_module.plan_from_layout(
        layout, rules
    ) or rules_module.ConsolidationPlan((), (before, before))
    packed = list(_packings(snapshot, rules)) if before > least else []
    fewest = min((count for count, _ in packed), default=before)
    is_whole = True
    if search_s and min(fewest, before) > least:
        searched, is_whole = _packings_by_program(snapshot, search_s)
        packed += searched
        fewest = min((count for count, _ in packed), default=before)
    packed = [
        (count, _with_more_staying(layout, at))
        for count, at in packed
        if count < before
    ]
    packed += _packing_by_emptying(snapshot, rules, min(fewest, before - 1))
    best = _cheapest_plan(layout, rules, packed) or nothing
    best = dataclasses.replace(best, is_whole=is_whole)
    if not best.moves:
        return best
    after = utilisation.snapshot_after_moves(snapshot, best.moves)
    is_fewest = best.busy[1] <= fewest
    if is_fewest and not _packing_by_emptying(after, rules, best.busy[1] - 1):
        return best
    # Fewer hosts may have an order from there on.
    return _joined_plan(best, repack(after, rules, search_s))


def _with_more_staying(layout: layout_module.HostLayout, at: Rows) -> Rows:
    """Return a packing on the same hosts in which more servers stay on their
    present hosts.

    The servers whose move sends most memory come first; no other server makes
    room for them.

    :param layout: the present layout; it is not changed.
    :param at: (n,) rows of the hosts of items in the packing.
    """
    mark, home = layout.mark(), layout.at.copy()
    _apply_packing(layout, at)
    busy = layout.targets
    moved = np.flatnonzero((at != home) & busy[home])
    for n in map(int, moved[np.argsort(-layout.cost[moved], kind='stable')]):
        only = np.zeros_like(busy)
        only[home[n]] = True
        if layout.fitting(n, only).size:
            layout.put(n, int(home[n]))
    found = layout.at.copy()
    layout.back(mark)
    return found


def _packing_by_emptying(
    snapshot: cluster.ClusterSnapshot,
    rules: rules_module.ConsolidationRules,
    fewest: int,
) -> list[tuple[int, Rows]]:
    """Return the packing that results from emptying one host after another.

    It moves less than a packing of all servers with as few hosts.

    :returns: number of hosts and rows of the hosts of items; an empty list if
        more hosts than ``fewest`` are in use.
    """
    rules = dataclasses.replace(rules, partial=False)
    found = consolidate.consolidate(snapshot, rules)
    if not found.moves or found.busy[1] > fewest:
        return []
    layout = layout_module.HostLayout(snapshot, rules.rule)
    items = {each.uuid: n for n, each in enumerate(layout.items)}
    rows = {name: row for row, name in enumerate(layout.hosts.names)}
    at = layout.at.copy()
    for move in found.moves:
        at[items[move.server]] = rows[move.target]
    return [(found.busy[1], at)]


def _joined_plan(
    first: rules_module.ConsolidationPlan, then: rules_module.ConsolidationPlan
) -> rules_module.ConsolidationPlan:
    """Return one plan that executes a plan after another; a server may move
    twice.
    """
    waves = first.moves[-1].wave
    moves = [
        dataclasses.replace(each, wave=waves + each.wave)
        for each in then.moves
    ]
    return rules_module.ConsolidationPlan(
        (*first.moves, *moves),
        (first.busy[0], then.busy[1]),
        then.off,
        first.is_whole and then.is_whole,
    )


def _cheapest_plan(
    layout: layout_module.HostLayout,
    rules: rules_module.ConsolidationRules,
    packed: list[tuple[int, Rows]],
) -> rules_module.ConsolidationPlan | None:
    """Return the plan that sends the least memory, among the plans with the
    fewest hosts.

    The moves to a packing send at least the memory of all servers that change
    hosts. A packing with more memory than the best plan is not tried.
    """
    home = layout.at.copy()
    for fewest in sorted({count for count, _ in packed}):
        best: rules_module.ConsolidationPlan | None = None
        sent = [
            (int(layout.cost[at != home].sum()), at)
            for count, at in packed
            if count == fewest
        ]
        for cost_mb, at in sorted(sent, key=lambda each: each[0]):
            if best is not None and cost_mb >= best.cost_mb:
                break
            _apply_packing(layout, at)
            plan = rules_module.plan_from_layout(layout, rules, detours=True)
            if plan and (best is None or plan.cost_mb < best.cost_mb):
                best = plan
        if best is not None:
            return best
    return None


def repack_by_patterns(
    layout: layout_module.HostLayout,
    new: list[int],
    allowed: Marks,
    hosts: int,
) -> bool:
    """Repack the hosts with the most free room by patterns, together with new
    items.

    :param layout: the present layout with the new items; it is changed only if
        all items find a host.
    :param new: items that are on no host, and may be on any.
    :param allowed: (p,) hosts that may be taken.
    :param hosts: number of hosts that are repacked.
    :returns: whether all items are on a host.
    """
    if not displacement.repack_freest_hosts(
        layout, new, allowed, hosts, [patterns.fill]
    ):
        return False
    _, at = _packing_of_layout(layout)
    _apply_packing(layout, at)
    return True


def _apply_packing(layout: layout_module.HostLayout, at: Rows) -> None:
    """Put items on the hosts of a packing.

    :param at: (n,) rows of the hosts.
    """
    moving = np.flatnonzero(at != layout.at)
    for n in moving:
        layout.put(int(n), layout_module.NOWHERE)
    for n in moving:
        layout.put(int(n), int(at[n]))


def _packings(
    snapshot: cluster.ClusterSnapshot, rules: rules_module.ConsolidationRules
) -> Iterator[tuple[int, Rows]]:
    """Yield packings: the number of hosts in use, and the row of the host of
    each item.

    Packings do not depend on the present hosts of items, so that a packed
    cloud is not packed again.
    """
    for rule in dict.fromkeys((rules.rule, *_RULES)):
        layout = layout_module.HostLayout(snapshot, rule)
        total = np.maximum(layout.hosts.capacity.sum(axis=1), 1)
        largest = (layout.amounts / total).max(axis=1, initial=0.0)
        for size in (layout.size, largest):
            if _pack(layout, _remove_from_hosts(layout), size):
                yield _packing_of_layout(layout)
            layout.back(0)
    for fill in _FILLS:
        if fill(layout, _remove_from_hosts(layout), _host_order(layout)):
            yield _packing_of_layout(layout)
        layout.back(0)


def _packings_by_program(
    snapshot: cluster.ClusterSnapshot, longest_s: float
) -> tuple[list[tuple[int, Rows]], bool]:
    """Return packings of an integer program, and whether they are optimal."""
    layout = layout_module.HostLayout(snapshot, weighers.fullest)
    try:
        found = optimum.fewest(snapshot, longest_s)
    except exception.SolverFailed:
        return [], False
    if found.at is None:
        return [], False
    _apply_packing(layout, found.at)
    return [_packing_of_layout(layout)], found.found == found.bound


def _remove_from_hosts(layout: layout_module.HostLayout) -> list[int]:
    """Remove all movable items from their hosts.

    :returns: these items.
    """
    items = [int(n) for n in np.flatnonzero(layout.may_move)]
    for n in items:
        layout.put(n, layout_module.NOWHERE)
    return items


def _host_order(layout: layout_module.HostLayout) -> list[int]:
    """Return the rows of hosts: hosts in use first, then by size, the
    largest first.
    """
    takes = np.flatnonzero(layout.hosts.takes)
    worth = layout.worth @ layout.hosts.capacity
    order = np.lexsort((-worth[takes], ~layout.busy[takes]))
    return [int(row) for row in takes[order]]


def _pack(
    layout: layout_module.HostLayout, items: list[int], size: Fractions
) -> bool:
    """Put items that are on no host on hosts, the largest first.

    :returns: whether all found a host.
    """
    worth = layout.worth @ layout.hosts.capacity
    for n in sorted(items, key=lambda n: (-size[n], n)):
        row = layout.find(n, layout.targets)
        if row == layout_module.NOWHERE:
            row = _largest_unused_host(layout, n, worth)
        if row == layout_module.NOWHERE:
            return False
        layout.put(n, row)
    return True


def _largest_unused_host(
    layout: layout_module.HostLayout, n: int, worth: Fractions
) -> int:
    """Return the row of the largest unused host with room for an item; -1
    if there is none.
    """
    rows = layout.fitting(n, layout.hosts.takes & ~layout.busy)
    return int(rows[worth[rows].argmax()]) if len(rows) else -1


def _packing_of_layout(layout: layout_module.HostLayout) -> tuple[int, Rows]:
    """Return the number of hosts in use, and the row of the host of each item,
    in a layout.

    Hosts of one kind are exchanged in the packing so that moves send the least
    memory; then servers that are alike are exchanged for the same reason.
    """
    packed = layout.at.copy()
    layout.back(0)
    is_empty = np.asarray(~layout.stay.any(axis=0))
    alike = layout.alike(map(int, np.flatnonzero(layout.may_move)))
    new = _exchange_hosts(layout, alike, packed, is_empty)[packed]
    for items in alike:
        new[items] = _assign_hosts(layout.at[items], new[items])
    busy = np.asarray(~is_empty)
    busy[new] = True
    return int(busy.sum()), new


def _exchange_hosts(
    layout: layout_module.HostLayout,
    alike: list[list[int]],
    packed: Rows,
    is_empty: Marks,
) -> Rows:
    """Return for each host the row of the host that gets its servers instead,
    (p,).

    :param packed: (n,) rows of the hosts of items.
    :param is_empty: (p,) whether all servers of each host may move.
    """
    kinds = layout.hosts.kind_of_host
    kept = np.zeros((len(kinds), len(kinds)))
    for items in alike:
        to, arriving = np.unique(packed[items], return_counts=True)
        at = layout.at[items]
        lies = at != layout_module.NOWHERE
        at, lying = np.unique(at[lies], return_counts=True)
        same = np.minimum(arriving[:, np.newaxis], lying)
        kept[np.ix_(to, at)] += same * layout.cost[items[0]]
    new = np.arange(len(kinds))
    is_free = is_empty & ~_has_restricted_item(layout, alike, packed)
    for kind in np.unique(kinds[is_free]):
        rows = np.flatnonzero(is_free & (kinds == kind))
        new[rows] = rows[programs.assign(-kept[np.ix_(rows, rows)])]
    return new


def _has_restricted_item(
    layout: layout_module.HostLayout, alike: list[list[int]], packed: Rows
) -> Marks:
    """Return whether each host has an item that may not be on all hosts of
    its kind, (p,).
    """
    kinds = layout.hosts.kind_of_host
    bound = np.zeros(len(kinds), dtype=bool)
    for items in alike:
        shape = layout.items[items[0]].shape
        may = np.zeros(len(kinds), dtype=bool)
        if shape is not None:
            may[shape.rows] = True
        bound[packed[items]] |= np.isin(kinds, kinds[~may])[packed[items]]
    return bound


def _assign_hosts(at: Rows, new: Rows) -> Rows:
    """Assign new hosts to interchangeable items, so that as many as possible
    stay on their host.

    :param at: (k,) rows of their present hosts.
    :param new: (k,) rows of their new hosts, in any order.
    """
    left = collections.Counter(new.tolist())
    found = np.full(len(at), layout_module.NOWHERE)
    for k, row in enumerate(at.tolist()):
        if left[row]:
            left[row] -= 1
            found[k] = row
    found[found == layout_module.NOWHERE] = sorted(left.elements())
    return found
