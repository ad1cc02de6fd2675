# SPDX-License-Identifier: Apache-2.0

"""The pattern that is worth most on one host: a knapsack of several classes.

A table has a cell for each amount of all classes together. Where it would have
too many cells, amounts are counted in coarser units and rounded up: what is
found fits all the same, and something better may be missed.
"""

from collections.abc import Iterator
import math
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Fractions = npt.NDArray[np.float64]

CELLS = 40_000
"""Cells of a table at most."""

_SAME = 1e-12


class KnapsackHost:
    """A host of one sort.

    :param sizes: (k, c) of one of each kind.
    :param room: (c,) of the host.
    :param most: (k,) of each kind that may lie on it.

    :ivar is_exact: whether nothing better can be missed.
    :ivar most: (k,) of each kind that it could hold.
    """

    def __init__(self, sizes: Counts, room: Counts, most: Counts) -> None:
        fits = np.where(sizes > 0, room // np.maximum(sizes, 1), most[:, None])
        self.most = np.minimum(most, fits.min(axis=1, initial=most.max()))
        scarce = _scarce(sizes, room, self.most)
        self._sizes, self._room = _in_units(
            sizes[:, scarce], room[scarce], self.most > 0
        )
        self.is_exact = self.cells <= CELLS
        while self.cells > CELLS:
            self._coarsen()

    @property
    def cells(self) -> int:
        """Of the table."""
        return math.prod(int(each) + 1 for each in self._room)

    def work(self, counts: Counts) -> int:
        """Cells that are looked at for a pattern of so many at most."""
        most = np.minimum(self.most, counts)
        return self.cells * sum(int(each).bit_length() for each in most)

    def pattern(self, price: Fractions, counts: Counts) -> Counts:
        """The one that is worth most.

        :param price: (k,) of one of each kind.
        :param counts: (k,) of each kind that there are.
        """
        best = np.zeros(tuple(int(each) + 1 for each in self._room))
        taken: list[tuple[int, int, npt.NDArray[np.bool_]]] = []
        most = np.where(price > _SAME, np.minimum(self.most, counts), 0)
        for k in map(int, np.flatnonzero(most)):
            for count in _doubled(int(most[k])):
                used = count * self._sizes[k]
                if (used > self._room).any():
                    break
                taken.append((k, count, _put(best, used, count * price[k])))
        pattern = np.zeros(len(price), dtype=np.int64)
        at = self._room.copy()
        for k, count, is_better in reversed(taken):
            if is_better[tuple(at)]:
                pattern[k] += count
                at -= count * self._sizes[k]
        return pattern

    def _coarsen(self) -> None:
        """Count the class with most units in units twice as large."""
        c = int(self._room.argmax())
        self._room[c] //= 2
        self._sizes[:, c] = -(-self._sizes[:, c] // 2)


def _scarce(sizes: Counts, room: Counts, most: Counts) -> list[int]:
    """Classes that may be a limit for those that may lie there."""
    sizes = sizes[most > 0]
    # There may be enough for all that could come.
    left = [int(c) for c in np.flatnonzero(most[most > 0] @ sizes > room)]
    for c in tuple(left):
        # Another one may be used up sooner, whatever comes.
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
    """Sizes and room in the largest units that divide all sizes."""
    unit = np.maximum(np.gcd.reduce(sizes[may], axis=0), 1)
    return -(-sizes // unit), room // unit


def _doubled(count: int) -> Iterator[int]:
    """Numbers whose sums are all up to a number: 1, 2, 4 and the rest."""
    step = 1
    while count > step:
        yield step
        count -= step
        step *= 2
    yield count


def _put(best: Fractions, used: Counts, worth: float) -> npt.NDArray[np.bool_]:
    """Put something into all cells in which it is better, and say where."""
    # Without any class there is one cell, and with dots it is an array, too.
    whole: tuple[Any, ...] = (...,)
    sizes = zip(best.shape, used.tolist(), strict=True)
    rest = (*(slice(0, size - n) for size, n in sizes), *whole)
    place = (*(slice(n, None) for n in used.tolist()), *whole)
    part = best[rest] + worth
    is_better = np.zeros(best.shape, dtype=bool)
    is_better[place] = part > best[place] + _SAME
    np.copyto(best[place], part, where=is_better[place])
    return is_better
