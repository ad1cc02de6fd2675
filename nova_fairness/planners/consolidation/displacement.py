# SPDX-License-Identifier: Apache-2.0

"""Search for hosts for items, in which smaller items may be displaced to other
hosts.

Baadal (Kumar and Dalal 2014) empties a host by first fit decreasing. An item
that fits on no host displaces smaller servers, for which hosts are searched in
the same way, up to a few levels. A request that fits on no host is placed in
the same way.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.consolidation import bin_filling
from nova_fairness.planners.consolidation import layout as layout_module

Rows = layout_module.Rows
Marks = layout_module.Marks

_Displaced = tuple[int, Rows]
"""Row of a host, and the items that leave the host."""


@dataclasses.dataclass(frozen=True, slots=True)
class Depth:
    """Limits of the search for a host.

    :ivar levels: largest number of levels of items that displace each other,
        >= 0; with 1 an item displaces no other item.
    :ivar breadth: number of displacements that are tried at each level, >= 1.
    :ivar repacked: largest number of hosts that are repacked for a request; 0
        for none.
    :ivar tight: largest number of hosts that are repacked by patterns for a
        request that fits in no other way; 0 for none.
    """

    levels: int = 3
    breadth: int = 3
    repacked: int = 8
    tight: int = 0


def place_with_displacement(
    layout: layout_module.HostLayout,
    items: Iterable[int],
    allowed: Marks,
    depth: Depth,
) -> bool:
    """Put items that are on no host on hosts, the largest item first.

    :param layout: layout of the hosts; it is changed only if all items find a
        host.
    :param allowed: (p,) hosts that may be used.
    :returns: whether all items are on a host.
    """
    mark = layout.mark()
    search = _Search(layout, allowed, depth)
    if all(search.placed(n, 1) for n in largest_first(layout, items, allowed)):
        return True
    layout.back(mark)
    return False


def repack_freest_hosts(
    layout: layout_module.HostLayout,
    items: Iterable[int],
    allowed: Marks,
    hosts: int,
    fills: Sequence[bin_filling.Fill] = bin_filling.FILLS,
) -> bool:
    """Repack the hosts with the most free room, together with items that are
    on no host.

    :param layout: layout of the hosts; it is changed only if all items find a
        host.
    :param allowed: (p,) hosts that may be used.
    :param hosts: number of hosts that are repacked.
    :param fills: functions that fill hosts; the first that succeeds is used.
    :returns: whether all items are on a host.
    """
    new, mark = list(items), layout.mark()
    left = np.maximum(layout.free, 0).T @ layout.worth
    listed = np.flatnonzero(layout.targets & allowed)
    rows = listed[np.argsort(-left[listed], kind='stable')][:hosts]
    on = np.flatnonzero(layout.may_move & np.isin(layout.at, rows))
    for fill in fills:
        for n in on:
            layout.put(int(n), layout_module.NOWHERE)
        if fill(layout, [*new, *map(int, on)], rows.tolist()):
            return True
        layout.back(mark)
    return False


def largest_first(
    layout: layout_module.HostLayout, items: Iterable[int], allowed: Marks
) -> list[int]:
    """Return the order in which hosts are searched for items.

    Of items of equal size, the one with the fewest possible hosts is first,
    because other items could use these hosts.

    :param allowed: (p,) hosts that may be used.
    """
    return sorted(
        items,
        key=lambda n: (
            -layout.size[n],
            layout.choice(n, allowed),
            layout.items[n].uuid,
        ),
    )


class _Search:
    """Search for hosts of items; see :func:`place_with_displacement`."""

    def __init__(
        self, layout: layout_module.HostLayout, allowed: Marks, depth: Depth
    ) -> None:
        self._layout, self._allowed, self._depth = layout, allowed, depth

    def placed(self, n: int, level: int) -> bool:
        """Put one item on a host, and the items that it displaces on other
        hosts.

        :returns: whether all these items are on a host.
        """
        layout = self._layout
        row = layout.find(n, self._allowed)
        if row != layout_module.NOWHERE:
            layout.put(n, row)
            return True
        shape = layout.items[n].shape
        if level >= self._depth.levels or shape is None:
            return False
        for where, others in self._displacements(n, shape):
            mark = layout.mark()
            for other in others:
                layout.put(other, layout_module.NOWHERE)
            layout.put(n, where)
            # Only smaller items are displaced, so this ends.
            if all(
                self.placed(other, level + 1)
                for other in largest_first(layout, others, self._allowed)
            ):
                return True
            layout.back(mark)
        return False

    def _displacements(
        self, n: int, shape: hosts_module.Shape
    ) -> list[_Displaced]:
        """Return displacements that make room for an item, the smallest
        displaced item first.
        """
        layout = self._layout
        rows = np.zeros(len(layout.hosts.names), dtype=bool)
        rows[shape.rows] = True
        rows &= layout.permitted(n, self._allowed)
        leave = layout.may_move & (layout.size < layout.size[n])
        leave &= layout.at != layout_module.NOWHERE
        smaller = np.flatnonzero(leave)
        smaller = smaller[rows[layout.at[smaller]]]
        have = layout.free[shape.columns][:, layout.at[smaller]]
        have = have + layout.amounts[smaller][:, shape.columns].T
        enough = smaller[(have >= shape.amounts).all(axis=0)]
        first = np.argsort(layout.size[enough], kind='stable')
        chosen = enough[first[: self._depth.breadth]]
        if len(chosen):
            return [
                (int(layout.at[one]), np.array([one], dtype=np.intp))
                for one in chosen
            ]
        return self._larger_displacements(shape, smaller)

    def _larger_displacements(
        self, shape: hosts_module.Shape, smaller: Rows
    ) -> list[_Displaced]:
        """Return displacements of several items each, on the hosts that
        lack the least.
        """
        layout = self._layout
        at = layout.at[smaller]
        count = len(layout.hosts.names)
        free = layout.free[shape.columns]
        amounts = layout.amounts[smaller][:, shape.columns].T
        most = free + np.array(
            [np.bincount(at, each, count) for each in amounts]
        )
        rows = np.unique(at)
        rows = rows[(most[:, rows] >= shape.amounts).all(axis=0)]
        missing = np.maximum(shape.amounts - free[:, rows], 0)
        lacks = (missing / shape.amounts).sum(axis=0)
        nearest = rows[np.argsort(lacks, kind='stable')]
        return [
            (
                int(row),
                self._items_to_displace(shape, smaller[at == row], int(row)),
            )
            for row in nearest[: self._depth.breadth]
        ]

    def _items_to_displace(
        self, shape: hosts_module.Shape, items: Rows, row: int
    ) -> Rows:
        """Return items whose removal makes enough room on a host: few and
        large, and none without need.
        """
        layout = self._layout
        asked = shape.amounts[:, 0]
        have = layout.free[shape.columns, row]
        leave: list[int] = []
        order = np.argsort(-layout.size[items], kind='stable')
        for n in items[order]:
            if (have >= asked).all():
                break
            given = layout.amounts[n][shape.columns]
            if (given[have < asked] > 0).any():
                have = have + given
                leave.append(int(n))
        needed = list(leave)
        # Later items may make the room of earlier ones unnecessary.
        for n in leave:
            rest = have - layout.amounts[n][shape.columns]
            if (rest >= asked).all():
                have = rest
                needed.remove(n)
        return np.array(needed, dtype=np.intp)
