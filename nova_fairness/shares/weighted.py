# SPDX-License-Identifier: Apache-2.0

"""Division of nodes by given weights, and the heaviness of owners.

Rows are those of :mod:`.maxmin`, on nodes that are short. Rates, weights and
heaviness are logarithms.
"""

from collections.abc import Callable
import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from nova_fairness.shares import filling
from nova_fairness.shares import rounding

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

LIGHT = 1e-3
"""Heaviness from which differences count relative to it. Below it they count
relative to this number."""

SAME = 1e-9
"""Relative difference below which two amounts are equal."""

_FILL_STEPS = 60
_FILLED = 1e-6
_FAR = 2.0
_GUESSED = 10

Weigh = Callable[[Floats], tuple[Floats, Floats]]
"""(n,) amount of each row -> (k,) heaviness of each owner, and (k,) >= 0 its
slope: the change by a unit more for the owner's user."""


@dataclasses.dataclass(frozen=True, eq=False)
class ShortNodes:
    """Rows of the nodes that are short, and the metric.

    :ivar rows: (p,) index of each row among all rows.
    :ivar full: (p,) logarithms of the rates per size with which rows have all
        they want.
    :ivar reach: logarithm of the largest weight divided by the smallest.
    :ivar idle: (n,) amount of all rows if no node were short.
    :ivar blur: range of a logarithm over which bounds are rounded off.
    :ivar floor: (m,) logarithms of given least rates of nodes; NaN where the
        highest rate of the node decides. ``None`` if it does everywhere.
    """

    rows: Places
    node: Places
    owner: Places
    user: Places
    full: Floats
    size: Floats
    supply: Floats
    reach: float
    weigh: Weigh
    idle: Floats
    blur: float
    floor: Floats | None = None

    @functools.cached_property
    def first(self) -> Places:
        """First row of each node, (m,)."""
        return np.searchsorted(self.node, np.arange(len(self.supply)))

    @functools.cached_property
    def alone(self) -> bool:
        """Whether each owner is a user."""
        return np.array_equal(self.user, np.arange(len(self.user)))

    def of(self, chosen: Bools, rows: Places) -> 'ShortNodes':
        """Return some of the nodes, with their rows.

        :param chosen: (m,) these nodes.
        :param rows: their rows, ascending.
        """
        number = np.cumsum(chosen) - 1
        return dataclasses.replace(
            self,
            node=number[self.node[rows]],
            owner=self.owner[rows],
            full=self.full[rows],
            size=self.size[rows],
            supply=self.supply[chosen],
            floor=None if self.floor is None else self.floor[chosen],
        )

    def blurred(self, blur: float) -> 'ShortNodes':
        """Return the same rows with another blur."""
        return dataclasses.replace(self, blur=blur)

    def total(self, values: Floats) -> Floats:
        """Return the sum of each node's rows, (m,)."""
        return np.add.reduceat(values, self.first)

    def largest(self, values: Floats) -> Floats:
        """Return the largest value of each node's rows, (m,)."""
        return np.asarray(np.maximum.reduceat(values, self.first))

    def heaviness(self, got: Floats) -> tuple[Floats, Floats]:
        """Return the heaviness of owners as a logarithm, and its slope.

        :param got: (p,) amounts of the rows.
        :returns: (k,) and (k,).
        """
        every = self.idle.copy()
        every[self.rows] = got
        heavy, slope = self.weigh(every)
        return np.arcsinh(heavy / LIGHT), slope / np.hypot(heavy, LIGHT)


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedPoint:
    """Division of the nodes by given weights.

    :ivar cold: (k,) logarithm by which each owner's weights are lower than
        the largest.
    :ivar level: (m,) logarithm of the rate per size where ``cold`` is 0.
    :ivar rates: (p,) rates of the rows.
    :ivar got: (p,) amounts of the rows.
    :ivar heavy: (k,) heaviness of owners, a logarithm.
    :ivar slope: (k,) change of ``heavy`` by a unit more.
    """

    nodes: ShortNodes
    cold: Floats
    level: Floats
    rates: 'Rates'
    got: Floats
    heavy: Floats
    slope: Floats

    @classmethod
    def of(
        cls, nodes: ShortNodes, cold: Floats, level: Floats
    ) -> 'WeightedPoint':
        """Divide the nodes.

        :param level: (m,) guesses of the levels.
        """
        level, rates = _find_levels(nodes, cold[nodes.owner], level)
        got = nodes.size * np.exp(rates.rate)
        heavy, slope = nodes.heaviness(got)
        return cls(nodes, cold, level, rates, got, heavy, slope)

    def restricted(self, chosen: Bools, rows: Places) -> 'WeightedPoint':
        """Return the division of some of the nodes.

        :param chosen: (m,) these nodes.
        :param rows: their rows, ascending.
        """
        return dataclasses.replace(
            self,
            nodes=self.nodes.of(chosen, rows),
            level=self.level[chosen],
            rates=self.rates.restricted(chosen, rows),
            got=self.got[rows],
        )

    def redivided(
        self, chosen: Bools, rows: Places, cold: Floats, level: Floats
    ) -> 'WeightedPoint':
        """Divide some nodes again with other weights.

        :param chosen: (m,) all nodes with a row of an owner whose weights
            change.
        :param rows: their rows, ascending.
        :param cold: (k,) new weights of all owners.
        :param level: guesses of the levels of these nodes.
        """
        inner = self.nodes.of(chosen, rows)
        found, rates = _find_levels(inner, cold[inner.owner], level)
        levels, got = self.level.copy(), self.got.copy()
        levels[chosen] = found
        got[rows] = inner.size * np.exp(rates.rate)
        every = self.rates.copy()
        every.put(chosen, rows, rates)
        heavy, slope = self.nodes.heaviness(got)
        return WeightedPoint(
            self.nodes, cold, levels, every, got, heavy, slope
        )

    def off(self, sharpness: float) -> Floats:
        """Return the distance of owners from their targets, (k,).

        An owner is at the target if ``cold`` is the heaviness divided by
        ``sharpness``.
        """
        return np.asarray(self.heavy - sharpness * self.cold)


@dataclasses.dataclass(frozen=True, eq=False)
class Rates:
    """Rates of rows per size; all are logarithms.

    :ivar wish: (p,) rate without bounds.
    :ivar least: (m,) rate at the least weight.
    :ivar rate: (p,) rate within the bounds.
    :ivar by_wish: (p,) 0..1, change of ``rate`` by a unit more of ``wish``.
    :ivar by_least: (p,) 0..1, change of ``rate`` by a unit more of ``least``.
    """

    wish: Floats
    least: Floats
    rate: Floats
    by_wish: Floats
    by_least: Floats

    @classmethod
    def of(cls, nodes: ShortNodes, wish: Floats) -> 'Rates':
        """Bound rates by wants from above, and by the ratio from below."""
        blur = nodes.blur
        capped, _ = rounding.smooth_minimum(nodes.full, wish, blur)
        least = nodes.largest(capped) - nodes.reach
        if nodes.floor is not None:
            least = np.where(np.isnan(nodes.floor), least, nodes.floor)
        raised, follows = rounding.smooth_minimum(
            -wish, -least[nodes.node], blur
        )
        rate, full = rounding.smooth_minimum(-raised, nodes.full, blur)
        by_least = full * (1 - follows)
        if nodes.floor is not None:
            # What is given does not change with weights.
            by_least = np.where(
                np.isnan(nodes.floor)[nodes.node], by_least, 0.0
            )
        return cls(wish, least, rate, full * follows, by_least)

    def copy(self) -> 'Rates':
        """Return a copy of all rates."""
        return Rates(
            *(
                getattr(self, each.name).copy()
                for each in dataclasses.fields(self)
            )
        )

    def restricted(self, chosen: Bools, rows: Places) -> 'Rates':
        """Return the rates of some nodes.

        :param chosen: (m,) these nodes.
        :param rows: their rows, ascending.
        """
        return Rates(
            self.wish[rows],
            self.least[chosen],
            self.rate[rows],
            self.by_wish[rows],
            self.by_least[rows],
        )

    def put(self, chosen: Bools, rows: Places, found: 'Rates') -> None:
        """Replace the rates of some nodes.

        :param chosen: (m,) these nodes.
        :param rows: their rows, ascending.
        """
        self.least[chosen] = found.least
        self.wish[rows] = found.wish
        self.rate[rows] = found.rate
        self.by_wish[rows] = found.by_wish
        self.by_least[rows] = found.by_least


def _find_levels(
    nodes: ShortNodes, lower: Floats, first_guess: Floats
) -> tuple[Floats, Rates]:
    """Find the levels at which rows have all of each node's supply.

    It uses Newton's method on logarithms. If a step does not halve the error,
    the interval that contains the level is halved instead.

    :param lower: (p,) ``cold`` of each row's owner.
    :param first_guess: (m,) levels from which the search starts.
    :returns: (m,) levels, and the rates of rows.
    """
    even = np.log(nodes.supply / nodes.total(nodes.size))
    low = even - nodes.largest(-lower) - 5 * nodes.blur
    high = nodes.largest(lower + nodes.full) + 40 * nodes.blur
    if nodes.floor is not None:
        # At least rates that are given rows can have nearly all there is.
        under = nodes.floor - nodes.largest(-lower) - 40 * nodes.blur
        low = np.fmin(low, under)
    level = first_guess.clip(low, high)
    last = np.full(len(level), np.inf)
    for number in range(_FILL_STEPS):
        rates = Rates.of(nodes, level[nodes.node] - lower)
        got = nodes.size * np.exp(rates.rate)
        total = nodes.total(got)
        over = np.log(total / nodes.supply)
        size = np.abs(over)
        if size.max(initial=0.0) < _FILLED:
            return level, rates
        high = np.where(over > 0, np.minimum(high, level), high)
        low = np.where(over < 0, np.maximum(low, level), low)
        follows = nodes.total(got * (rates.by_wish + rates.by_least))
        step = -over * total / np.maximum(follows, 1e-3 * total)
        step = level + step.clip(-_FAR, _FAR)
        # From a good guess the interval is still wide, and halving it far.
        good = (size < 0.5 * last) | (number < _GUESSED)
        good &= (step > low) & (step < high)
        open_ = size >= _FILLED
        level = np.where(open_, np.where(good, step, (low + high) / 2), level)
        last = size
        if 2 * np.count_nonzero(open_) < len(open_):
            rows = np.flatnonzero(open_[nodes.node])
            left = nodes.of(open_, rows)
            level[open_], found = _find_levels(left, lower[rows], level[open_])
            rates.put(open_, rows, found)
            return level, rates
    return level, Rates.of(nodes, level[nodes.node] - lower)


def settled_amounts(
    nodes: ShortNodes, point: WeightedPoint
) -> tuple[Floats, Floats]:
    """Return the amounts that a kernel gives rows, and their weights.

    :returns: (p,) amounts, and (p,) logarithms of the weights of the point.
    """
    top = (point.rates.least + nodes.reach)[nodes.node]
    log = (point.rates.wish - top).clip(-nodes.reach, 0.0)
    wanted, size = np.exp(nodes.full) * nodes.size, nodes.size * np.exp(log)
    got, _ = filling.fill(nodes.supply, nodes.node, wanted, size)
    return got, log
