# SPDX-License-Identifier: Apache-2.0

"""Packing by patterns: sets of servers that fit on a host of a sort.

Hosts are of one sort if they have the same room for the same servers, beside
the servers that stay on them. Only the most important sorts of hosts and kinds
of servers have patterns. The other servers and hosts are packed by filling one
host after the other.
"""

import collections
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from nova_fairness.planners.consolidation import bin_filling
from nova_fairness.planners.consolidation import columns
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.shares import programs

Rows = layout_module.Rows
Counts = columns.Counts

_KINDS, _SORTS = 100, 8


def fill(
    layout: layout_module.HostLayout, items: Iterable[int], rows: Sequence[int]
) -> bool:
    """Put items that are on no host on as few hosts as possible.

    :param rows: hosts that may be used; items without a pattern use them in
        this order.
    :returns: whether all items are on a host; otherwise some of them may be.
    """
    listed = list(items)
    kinds = _largest_kinds(layout, listed)
    sorts, rare = _frequent_sorts(layout, kinds, np.array(rows, dtype=np.intp))
    busy = layout.busy
    in_use = [row for row in rare if busy[row]]
    bin_filling.fill(layout, listed, in_use)
    _pack_all_or_none(layout, _unplaced_items(layout, kinds), sorts)
    left = [n for n in listed if layout.at[n] == layout_module.NOWHERE]
    return bin_filling.fill(layout, left, rows)


def _largest_kinds(
    layout: layout_module.HostLayout, items: list[int]
) -> list[list[int]]:
    """Return the items by kind, for the kinds with the largest total size.

    If the members of a group that keeps them apart are of several kinds, none
    of these is included: such items have no patterns.
    """
    found = layout.alike(items)
    groups = collections.Counter(
        group.uuid
        for each in found
        if (group := layout.items[each[0]].apart) is not None
    )
    one = [
        each
        for each in found
        if (group := layout.items[each[0]].apart) is None
        or groups[group.uuid] == 1
    ]
    need = [float(layout.size[each].sum()) for each in one]
    order = np.argsort(-np.array(need), kind='stable')
    return [one[k] for k in order[:_KINDS]]


def _unplaced_items(
    layout: layout_module.HostLayout, kinds: list[list[int]]
) -> list[list[int]]:
    """Return the items of each kind that are on no host."""
    return [
        [n for n in each if layout.at[n] == layout_module.NOWHERE]
        for each in kinds
    ]


def _frequent_sorts(
    layout: layout_module.HostLayout, kinds: list[list[int]], rows: Rows
) -> tuple[list[Rows], Rows]:
    """Return the rows of the hosts of each frequent sort, and the rows of
    all other hosts.
    """
    if not kinds or not len(rows):
        return [], rows
    most = np.array([layout.holds(each[0])[rows] for each in kinds])
    same = np.vstack([layout.free[:, rows], layout.busy[rows], most])
    _, of = np.unique(same, axis=1, return_inverse=True)
    found = [rows[of.ravel() == q] for q in range(int(of.max()) + 1)]
    found.sort(key=lambda each: -len(each))
    rare = np.array([row for each in found[_SORTS:] for row in each], np.intp)
    return found[:_SORTS], rare


def _pack_all_or_none(
    layout: layout_module.HostLayout, kinds: list[list[int]], sorts: list[Rows]
) -> None:
    """Put all items that fit on hosts of these sorts, or none."""
    first = np.array([rows[0] for rows in sorts], dtype=np.intp)
    room = np.maximum(layout.free[:, first].T, 0)
    fits = [
        each
        for each in kinds
        if each
        and (
            (layout.holds(each[0])[first] > 0)
            & (layout.amounts[each[0]] <= room).all(axis=1)
        ).any()
    ]
    if not fits:
        return
    one = [each[0] for each in fits]
    found = columns.pack(
        columns.PackingTask(
            layout.amounts[one],
            np.array([len(each) for each in fits], dtype=np.int64),
            room,
            np.array([layout.holds(n)[first] for n in one]).T,
            programs.Sorts(
                np.array([len(rows) for rows in sorts]),
                np.where(layout.busy[first], 0.0, 1.0),
            ),
        )
    )
    if found is not None:
        _apply_packing(layout, fits, sorts, found)


def _apply_packing(
    layout: layout_module.HostLayout,
    kinds: list[list[int]],
    sorts: list[Rows],
    packed: columns.Packing,
) -> None:
    """Put items on the hosts of a packing."""
    hosts = [iter(rows.tolist()) for rows in sorts]
    left = [iter(each) for each in kinds]
    for q, counts in zip(packed.sort, packed.counts, strict=True):
        row = next(hosts[q])
        for k in np.flatnonzero(counts):
            for _ in range(counts[k]):
                layout.put(next(left[k]), row)
