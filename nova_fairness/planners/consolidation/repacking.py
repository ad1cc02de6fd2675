# SPDX-License-Identifier: Apache-2.0

"""All servers packed anew, and hosts chosen so that few have to move.

First fit decreasing, and one host filled after the other, in several ways; of
those that need the fewest hosts the cheapest is taken. It is a rare thing to
do, as once a week (Baadal), since nearly everything may move.
"""

import collections
from collections.abc import Iterator
import dataclasses

import numpy as np

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.planners import placement
from nova_fairness.planners.consolidation import filling
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import optimum
from nova_fairness.planners.consolidation import plans
from nova_fairness.shares import programs

Rows = layout_module.Rows
Fractions = layout_module.Fractions
Marks = layout_module.Marks

_RULES = (placement.fullest, placement.best_fit, placement.cosine)


def repack(
    snapshot: cluster.ClusterSnapshot,
    rules: plans.Rules = plans.USUAL,
    search_s: float = 0.0,
) -> plans.Plan:
    """Pack all servers anew if that needs fewer hosts.

    Nothing is moved if there is no order in which each finds room.

    :param search_s: for which an integer program looks for fewer hosts, if
        there may be; for clouds of a few dozen servers. If its time is over
        before it is sure, the best that was found counts, and the plan is
        not whole.
    """
    layout = layout_module.Layout(snapshot, rules.rule)
    before, least = int(layout.busy.sum()), optimum.bound(layout)
    nothing = plans.made(layout, rules) or plans.Plan((), (before, before))
    packed = list(_packings(snapshot, rules)) if before > least else []
    fewest = min((count for count, _ in packed), default=before)
    is_whole = True
    if search_s and min(fewest, before) > least:
        searched, is_whole = _searched(snapshot, search_s)
        packed += searched
        fewest = min((count for count, _ in packed), default=before)
    if fewest >= before:
        return dataclasses.replace(nothing, is_whole=is_whole)
    found = []
    for at in [each for count, each in packed if count == fewest]:
        _put(layout, at)
        plan = plans.made(layout, rules, detours=True)
        if plan:
            found.append(plan)
    best = min(found, key=lambda plan: plan.cost_mb, default=nothing)
    return dataclasses.replace(best, is_whole=is_whole)


def _put(layout: layout_module.Layout, at: Rows) -> None:
    """Put items where they are to lie, (n,) rows of hosts."""
    moving = np.flatnonzero(at != layout.at)
    for n in moving:
        layout.put(int(n), layout_module.NOWHERE)
    for n in moving:
        layout.put(int(n), int(at[n]))


def _packings(
    snapshot: cluster.ClusterSnapshot, rules: plans.Rules
) -> Iterator[tuple[int, Rows]]:
    """Numbers of hosts, and the row of each item's host.

    They do not depend on where items lie now, so that what was packed is not
    packed again.
    """
    for rule in dict.fromkeys((rules.rule, *_RULES)):
        layout = layout_module.Layout(snapshot, rule)
        total = np.maximum(layout.hosts.capacity.sum(axis=1), 1)
        largest = (layout.amounts / total).max(axis=1, initial=0.0)
        for size in (layout.size, largest):
            if _pack(layout, _lifted(layout), size):
                yield _named(layout)
            layout.back(0)
    for way in filling.WAYS.values():
        items = _lifted(layout)
        if filling.fill(layout, items, _opening(layout), way):
            yield _named(layout)
        layout.back(0)


def _searched(
    snapshot: cluster.ClusterSnapshot, longest_s: float
) -> tuple[list[tuple[int, Rows]], bool]:
    """What an integer program finds, and whether nothing is better."""
    layout = layout_module.Layout(snapshot, placement.fullest)
    try:
        found = optimum.fewest(snapshot, longest_s)
    except exception.SolverFailed:
        return [], False
    if found.at is None:
        return [], False
    _put(layout, found.at)
    return [_named(layout)], found.found == found.bound


def _lifted(layout: layout_module.Layout) -> list[int]:
    """All that may move, taken off their hosts."""
    items = [int(n) for n in np.flatnonzero(layout.may_move)]
    for n in items:
        layout.put(n, layout_module.NOWHERE)
    return items


def _opening(layout: layout_module.Layout) -> list[int]:
    """Rows of hosts: those that are in use anyway, then the largest."""
    takes = np.flatnonzero(layout.hosts.takes)
    worth = layout.worth @ layout.hosts.capacity
    order = np.lexsort((-worth[takes], ~layout.busy[takes]))
    return [int(row) for row in takes[order]]


def _pack(
    layout: layout_module.Layout, items: list[int], size: Fractions
) -> bool:
    """Put items that lie nowhere on hosts, the largest first."""
    worth = layout.worth @ layout.hosts.capacity
    for n in sorted(items, key=lambda n: (-size[n], n)):
        row = layout.find(n, layout.targets)
        if row == layout_module.NOWHERE:
            row = _opened(layout, n, worth)
        if row == layout_module.NOWHERE:
            return False
        layout.put(n, row)
    return True


def _opened(layout: layout_module.Layout, n: int, worth: Fractions) -> int:
    """The largest host that is not in use and has room for an item."""
    rows = layout.fitting(n, layout.hosts.takes & ~layout.busy)
    return int(rows[worth[rows].argmax()]) if len(rows) else -1


def _named(layout: layout_module.Layout) -> tuple[int, Rows]:
    """Number of hosts of a packing, and the row of each item's host.

    Of hosts that are alike each gets the part of the packing with which the
    least memory is sent, and so do servers that are alike.
    """
    packed = layout.at.copy()
    layout.back(0)
    is_empty = np.asarray(~layout.stay.any(axis=0))
    alike = layout.alike(map(int, np.flatnonzero(layout.may_move)))
    new = _exchanged(layout, alike, packed, is_empty)[packed]
    for items in alike:
        new[items] = _staying(layout.at[items], new[items])
    busy = np.asarray(~is_empty)
    busy[new] = True
    return int(busy.sum()), new


def _exchanged(
    layout: layout_module.Layout,
    alike: list[list[int]],
    packed: Rows,
    is_empty: Marks,
) -> Rows:
    """(p,) For the row of each host that of the host which gets its part.

    :param packed: (n,) rows of the hosts of items.
    :param is_empty: (p,) hosts on which nothing stays.
    """
    kinds = layout.hosts.kinds
    kept = np.zeros((len(kinds), len(kinds)))
    for items in alike:
        to, arriving = np.unique(packed[items], return_counts=True)
        at, lying = np.unique(layout.at[items], return_counts=True)
        same = np.minimum(arriving[:, np.newaxis], lying)
        kept[np.ix_(to, at)] += same * layout.cost[items[0]]
    new = np.arange(len(kinds))
    is_free = is_empty & ~_bound(layout, alike, packed)
    for kind in np.unique(kinds[is_free]):
        rows = np.flatnonzero(is_free & (kinds == kind))
        new[rows] = rows[programs.assign(-kept[np.ix_(rows, rows)])]
    return new


def _bound(
    layout: layout_module.Layout, alike: list[list[int]], packed: Rows
) -> Marks:
    """(p,) Hosts with somebody who may not lie on all that are like them."""
    kinds = layout.hosts.kinds
    bound = np.zeros(len(kinds), dtype=bool)
    for items in alike:
        shape = layout.items[items[0]].shape
        may = np.zeros(len(kinds), dtype=bool)
        if shape is not None:
            may[shape.rows] = True
        bound[packed[items]] |= np.isin(kinds, kinds[~may])[packed[items]]
    return bound


def _staying(at: Rows, new: Rows) -> Rows:
    """New rows of items that are alike; as many as can stay where they are.

    :param at: (k,) rows of their hosts.
    :param new: (k,) where they go, in any order.
    """
    left = collections.Counter(new.tolist())
    found = np.full(len(at), layout_module.NOWHERE)
    for k, row in enumerate(at.tolist()):
        if left[row]:
            left[row] -= 1
            found[k] = row
    found[found == layout_module.NOWHERE] = sorted(left.elements())
    return found
