# SPDX-License-Identifier: Apache-2.0

"""Packing heuristics that fill one host after another with the most suitable
servers.

These are the bin-centric heuristics of Panigrahy et al. (2011). Where hosts
have more than one resource class, they leave less capacity unused than first
fit decreasing, which places one server after another.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import functools

import numpy as np

from nova_fairness.planners import free_amounts
from nova_fairness.planners.consolidation import layout as layout_module

Rows = layout_module.Rows
Fractions = layout_module.Fractions
Marks = layout_module.Marks

Way = Callable[[Fractions, Fractions, Fractions], Fractions]
"""Computes the scores of kinds of servers, (k,), from their amounts, (k,
c), and the free amounts of the host, (c,), both as parts of the host, and
the scarcity of classes, (c,). The kind with the largest score is placed.
"""


def dot_product_score(
    have: Fractions, left: Fractions, scarce: Fractions
) -> Fractions:
    """Score by the dot product of the server's amounts and the free
    amounts; larger is better.
    """
    total: Fractions = (have * left * scarce).sum(axis=1)
    return total


def remaining_space_score(
    have: Fractions, left: Fractions, scarce: Fractions
) -> Fractions:
    """Score by the space that remains on the host: minus the sum of its
    squares (norm-based greedy).
    """
    total: Fractions = -(scarce * (left - have) ** 2).sum(axis=1)
    return total


def fill(
    layout: layout_module.HostLayout,
    items: Iterable[int],
    rows: Sequence[int],
    way: Way = remaining_space_score,
) -> bool:
    """Put items that are on no host on hosts, one host after another.

    :param rows: hosts that may be used, in the order in which they are filled.
    :returns: whether all items are on a host; otherwise some of them may be.
    """
    kinds = _Kinds(layout, items)
    for row in rows:
        if not kinds.left.any():
            break
        while (n := kinds.best(row, way)) is not None:
            layout.put(n, row)
    return not kinds.left.any()


Fill = Callable[[layout_module.HostLayout, Iterable[int], Sequence[int]], bool]
"""Puts items on hosts; see :func:`fill`."""

FILLS: Sequence[Fill] = (functools.partial(fill, way=dot_product_score), fill)


class _Kinds:
    """Items grouped by kind. Items of one kind are interchangeable."""

    def __init__(
        self, layout: layout_module.HostLayout, items: Iterable[int]
    ) -> None:
        self._layout = layout
        self._items = layout.alike(items)
        first = [each[0] for each in self._items]
        self._first = np.array(first, dtype=np.intp)
        self._amounts = layout.amounts[self._first]
        self._fits = np.zeros((len(first), len(layout.hosts.names)), bool)
        for k, n in enumerate(first):
            shape = layout.items[n].shape
            if shape is not None:
                self._fits[k, shape.rows] = True
        self._is_apart = np.array(
            [layout.items[n].apart is not None for n in first], dtype=bool
        )
        self._scarce = layout.worth * np.maximum(
            layout.hosts.capacity.sum(axis=1), 1
        )
        self.left = np.array([len(each) for each in self._items], np.int64)

    def best(self, row: int, way: Way) -> int | None:
        """Remove an item of the best kind for a host, and return it;
        ``None`` if no item fits.
        """
        layout = self._layout
        free = layout.free[:, row]
        fits = self._fits[:, row] & (self.left > 0)
        fits &= free_amounts.is_enough(free[:, np.newaxis], self._amounts.T)
        for k in np.flatnonzero(fits & self._is_apart):
            fits[k] = layout.keeps_apart(int(self._first[k]), row)
        found = np.flatnonzero(fits)
        if not len(found):
            return None
        inverse = layout.inverse[:, row]
        have = self._amounts[found] * inverse
        scores = way(have, free * inverse, self._scarce)
        kind = int(found[scores.argmax()])
        self.left[kind] -= 1
        return self._items[kind].pop()
