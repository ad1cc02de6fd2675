# SPDX-License-Identifier: Apache-2.0

"""Knapsack with several classes: the pattern with the most worth on one host.

A table has a cell for each combination of amounts of the classes. If it would
have too many cells, amounts are counted in coarser units and rounded up. Then
the pattern found still fits, but a better one may be missed.
"""

from collections.abc import Iterator
import math
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Fractions = npt.NDArray[np.float64]

CELLS = 40_000
"""Largest number of cells of a table."""

_SAME = 1e-12


class KnapsackHost:
    """A host of one sort, for which patterns are searched.

    :param sizes: (k, c) amounts of one server of each kind.
    :param room: (c,) free amounts of the host.
    :param most: (k,) largest number of servers of each kind on the host.

    :ivar is_exact: whether no better pattern can be missed.
    :ivar most: (k,) largest number of servers of each kind on the host.
    """

    def __init__(self, sizes: Counts, room: Counts, most: Counts) -> None:
        fits = np.where(sizes > 0, room // np.maximum(sizes, 1), most[:, None])
        self.most = np.minimum(most, fits.min(axis=1, initial=most.max()))
        scarce = _limiting_classes(sizes, room, self.most)
        self._sizes, self._room = _in_units(
            sizes[:, scarce], room[scarce], self.most > 0
        )
        self.is_exact = self.cells <= CELLS
        while self.cells > CELLS:
            self._coarsen()

    @property
    def cells(self) -> int:
        """Return the number of cells of the table."""
        return math.prod(int(each) + 1 for each in self._room)

    def work(self, counts: Counts) -> int:
        """Return the number of cells that a search for a pattern computes.

        :param counts: (k,) number of servers of each kind.
        """
        most = np.minimum(self.most, counts)
        return self.cells * sum(int(each).bit_length() for each in most)

    def pattern(self, price: Fractions, counts: Counts) -> Counts:
        """Return the pattern with the most worth, (k,).

        :param price: (k,) worth of one server of each kind.
        :param counts: (k,) number of servers of each kind.
        """
        best = np.zeros(tuple(int(each) + 1 for each in self._room))
        taken: list[tuple[int, int, npt.NDArray[np.bool_]]] = []
        most = np.where(price > _SAME, np.minimum(self.most, counts), 0)
        for k in map(int, np.flatnonzero(most)):
            for count in _doubling_counts(int(most[k])):
                used = count * self._sizes[k]
                if (used > self._room).any():
                    break
                taken.append(
                    (k, count, _add_servers(best, used, count * price[k]))
                )
        pattern = np.zeros(len(price), dtype=np.int64)
        at = self._room.copy()
        for k, count, is_better in reversed(taken):
            if is_better[tuple(at)]:
                pattern[k] += count
                at -= count * self._sizes[k]
        return pattern

    def _coarsen(self) -> None:
        """Double the unit of the class with the most units."""
        c = int(self._room.argmax())
        self._room[c] //= 2
        self._sizes[:, c] = -(-self._sizes[:, c] // 2)


def _limiting_classes(sizes: Counts, room: Counts, most: Counts) -> list[int]:
    """Return the resource classes that can limit how many servers fit on a
    host.
    """
    sizes = sizes[most > 0]
    # Other classes have enough for all servers that could come.
    left = [int(c) for c in np.flatnonzero(most[most > 0] @ sizes > room)]
    for c in tuple(left):
        # A class is no limit if another one is always used up before it.
        if any(
            (sizes[:, c] * room[d] <= sizes[:, d] * room[c]).all()
            for d in left
            if d != c
        ):
            left.remove(c)
    return left


def _in_units(
    sizes: Counts, room: Counts, may: npt.NDArray[np.bool_]
) -> tuple[Counts, Counts]:
    """Return sizes and room in the largest units that divide all sizes."""
    unit = np.maximum(np.gcd.reduce(sizes[may], axis=0), 1)
    return -(-sizes // unit), room // unit


def _doubling_counts(count: int) -> Iterator[int]:
    """Yield numbers whose sums reach each number up to ``count``: 1, 2, 4
    and so on, and the rest.
    """
    step = 1
    while count > step:
        yield step
        count -= step
        step *= 2
    yield count


def _add_servers(
    best: Fractions, used: Counts, worth: float
) -> npt.NDArray[np.bool_]:
    """Add servers in all cells of the table in which that increases the worth.

    :returns: marks of these cells.
    """
    # Without a class there is one cell; an ellipsis makes it an array, too.
    whole: tuple[Any, ...] = (...,)
    sizes = zip(best.shape, used.tolist(), strict=True)
    rest = (*(slice(0, size - n) for size, n in sizes), *whole)
    place = (*(slice(n, None) for n in used.tolist()), *whole)
    part = best[rest] + worth
    is_better = np.zeros(best.shape, dtype=bool)
    is_better[place] = part > best[place] + _SAME
    np.copyto(best[place], part, where=is_better[place])
    return is_better
