# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The max-min fair division of many nodes that bounded weights can reach.

A kernel gives a VM that wants more ``level x size x weight``, with one level
for all VMs of a node. The division sought is the one in which the lightest
have as much as any weights can give them, then the next, and so on: on every
node all who compete are equally heavy, but for those at the least weight,
who are heavier, and those who have all they want.

It is found as the end of a sequence. With a *sharpness* ``1/e`` every weight
is ``exp(-t/e)`` of its owner's heaviness ``t``, within the bounds. For each
``e`` that is a system of equations, which Newton's method solves; the smaller
``e``, the nearer to equal heaviness. Each solution is the begin of the next.
As in interior point methods bounds are rounded off, so that the number of
steps does not grow with the number of nodes. What comes out does not depend
on who had how much before.
"""

from collections.abc import Callable
import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from nova_fairness.shares import filling
from nova_fairness.shares import krylov
from nova_fairness.shares import rounding

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

SOFTEST, SHARPER, SHARPEST = 0.5, 0.3, 0.003
"""The first ``e``, the factor from one to the next, and the last. Owners who
compete differ by at most ``e x log(ratio)`` in the end: 1 % of their
heaviness for a ratio of 20."""

LIGHT = 1e-3
"""Differences in heaviness count relative to it; near zero, where there is
no relative, to this."""

MOST_STEPS = 100
"""Newton steps in all. Where they do not suffice, the sharpest solution
that was found counts."""

BLUR = 0.02
"""Over so much (natural logarithm of a rate) bounds are rounded off."""

_STEPS = 12
_LARGEST_MOVE = 2.0
_HALVINGS = 3
_SOLVED = 0.2
_FILL_STEPS = 60
_FILLED = 1e-6
_FAR = 2.0
_GUESSED = 10
_SAME = 1e-9
_NEXT_TO_NOTHING = 1e-9

Weigh = Callable[[Floats], tuple[Floats, Floats]]
"""(n,) what each row gets -> (k,) how heavy each owner is, and (k,) >= 0 how
much heavier by a unit more for its user."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """What is wanted of nodes; each row stands for VMs that are alike.

    :ivar node: (n,) index of each row's node, ascending.
    :ivar owner: (n,) index of whose heaviness decides its weight.
    :ivar user: (k,) index of each owner's user: what any row of a user gets
        makes all of the user's owners heavier.
    :ivar wanted: (n,) finite, >= 0.
    :ivar size: (n,) > 0: what a kernel weighs it by at weight 1.
    :ivar supply: (m,) >= 0, of each node.
    """

    node: Places
    owner: Places
    user: Places
    wanted: Floats
    size: Floats
    supply: Floats

    def short(self) -> Bools:
        """Tell of which nodes more is wanted than they have, (m,)."""
        asked = np.bincount(self.node, self.wanted, len(self.supply))
        return np.asarray((self.supply > 0) & (asked > self.supply))


@dataclasses.dataclass(frozen=True, eq=False)
class Begin:
    """From where a search goes on that was not finished.

    :ivar cold: (k,) by which the logarithms of each owner's weights are
        lower, up to a number for each node.
    :ivar level: (q,) of the nodes that are short, see :class:`_Point`.
    :ivar sharpness: ``e`` that is being solved.
    """

    cold: Floats
    level: Floats
    sharpness: float


@dataclasses.dataclass(frozen=True, eq=False)
class Division:
    """What was found.

    :ivar got: (n,) what each row gets, at most what it wants.
    :ivar log: (n,) logarithms of the weights, 0 the largest of a node; 0 on
        nodes that are not short.
    :ivar sharpness: last ``e`` that was solved; infinite if none was.
    :ivar rest: where to go on; ``None`` if nothing is left to do.
    """

    got: Floats
    log: Floats
    sharpness: float
    rest: Begin | None


def divide(
    rows: Rows,
    weigh: Weigh,
    ratio: float,
    begin: Begin | None = None,
    steps: int = MOST_STEPS,
) -> Division:
    """Divide all nodes.

    :param weigh: how heavy owners would be.
    :param ratio: of the largest to the smallest weight of a node, >= 1.
    :param begin: what an earlier call with the same rows left to do.
    :param steps: of Newton's method that are made at most, >= 1.
    """
    short = rows.short()
    chosen = np.flatnonzero(short[rows.node] & (rows.wanted > 0))
    got, log = rows.wanted.copy(), np.zeros(len(rows.node))
    if not chosen.size:
        return Division(got, log, 0.0, None)
    names, node = np.unique(rows.node[chosen], return_inverse=True)
    nodes = _Nodes(
        rows=chosen,
        node=node.reshape(-1),
        owner=rows.owner[chosen],
        user=rows.user,
        full=np.log(rows.wanted[chosen] / rows.size[chosen]),
        size=rows.size[chosen],
        supply=rows.supply[names],
        reach=float(np.log(ratio)),
        weigh=weigh,
        idle=got.copy(),
    )
    found, sharpness, rest = _sharpened(nodes, begin, steps)
    got[chosen], log[chosen] = _settled(nodes, found)
    return Division(got, log, sharpness, rest)


@dataclasses.dataclass(frozen=True, eq=False)
class _Nodes:
    """Rows of the nodes that are short, and how all is weighed.

    :ivar rows: (p,) their places among all.
    :ivar full: (p,) logarithms of the rates per size with which they have
        all they want.
    :ivar reach: logarithm of the ratio of weights.
    :ivar idle: (n,) what all rows get if nothing is short.
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

    @functools.cached_property
    def first(self) -> Places:
        """First row of each node, (m,)."""
        return np.searchsorted(self.node, np.arange(len(self.supply)))

    @functools.cached_property
    def alone(self) -> bool:
        """Tell whether each owner is a user."""
        return np.array_equal(self.user, np.arange(len(self.user)))

    def of(self, chosen: Bools, rows: Places) -> '_Nodes':
        """Give some nodes, with their rows."""
        number = np.cumsum(chosen) - 1
        return dataclasses.replace(
            self,
            node=number[self.node[rows]],
            owner=self.owner[rows],
            full=self.full[rows],
            size=self.size[rows],
            supply=self.supply[chosen],
        )

    def total(self, values: Floats) -> Floats:
        """Sum over each node, (m,)."""
        return np.add.reduceat(values, self.first)

    def largest(self, values: Floats) -> Floats:
        """Give the largest of each node, (m,)."""
        return np.asarray(np.maximum.reduceat(values, self.first))

    def heaviness(self, got: Floats) -> tuple[Floats, Floats]:
        """Weigh the owners on a logarithmic scale: (k,) and its slope."""
        every = self.idle.copy()
        every[self.rows] = got
        heavy, slope = self.weigh(every)
        return np.arcsinh(heavy / LIGHT), slope / np.hypot(heavy, LIGHT)


@dataclasses.dataclass(frozen=True, eq=False)
class _Point:
    """The nodes divided with some weights.

    :ivar cold: (k,) logarithm by which each owner's weights are lower.
    :ivar level: (m,) logarithm of the rate per size at weight ``cold`` 0.
    :ivar rates: (p,) of the rows.
    :ivar got: (p,).
    :ivar heavy: (k,) heaviness, logarithmic.
    :ivar slope: (k,) of it by a unit more.
    """

    nodes: _Nodes
    cold: Floats
    level: Floats
    rates: '_Rates'
    got: Floats
    heavy: Floats
    slope: Floats

    @classmethod
    def of(cls, nodes: _Nodes, cold: Floats, level: Floats) -> '_Point':
        """Divide with weights, beginning with a guess of the levels."""
        lower = cold[nodes.owner]
        level = _filled(nodes, lower, level)
        rates = _Rates.of(nodes, level[nodes.node] - lower, BLUR)
        got = nodes.size * np.exp(rates.rate)
        heavy, slope = nodes.heaviness(got)
        return cls(nodes, cold, level, rates, got, heavy, slope)

    def off(self, sharpness: float) -> Floats:
        """How far the weights are from those of the heaviness, (k,)."""
        return np.asarray(self.heavy - sharpness * self.cold)


@dataclasses.dataclass(frozen=True, eq=False)
class _Rates:
    """What rows get per size; all are logarithms.

    :ivar wish: (p,) without bounds.
    :ivar least: (m,) at the least weight.
    :ivar rate: (p,) within the bounds.
    :ivar by_wish: (p,) 0..1, how much a rate follows its wish.
    :ivar by_least: (p,) 0..1, how much it follows the least.
    """

    wish: Floats
    least: Floats
    rate: Floats
    by_wish: Floats
    by_least: Floats

    @classmethod
    def of(cls, nodes: _Nodes, wish: Floats, blur: float) -> '_Rates':
        """Bound rates by what is wanted, and from below by the ratio."""
        capped, _ = rounding.smaller(nodes.full, wish, blur)
        least = nodes.largest(capped) - nodes.reach
        raised, follows = rounding.smaller(-wish, -least[nodes.node], blur)
        rate, full = rounding.smaller(-raised, nodes.full, blur)
        return cls(wish, least, rate, full * follows, full * (1 - follows))


def _filled(nodes: _Nodes, lower: Floats, level: Floats) -> Floats:
    """Find the levels at which all is divided that there is, (m,).

    Newton's method on logarithms; where it does not halve what is missing,
    the interval in which the level must be is halved.
    """
    even = np.log(nodes.supply / nodes.total(nodes.size))
    low = even - nodes.largest(-lower) - 5 * BLUR
    high = nodes.largest(lower + nodes.full) + 40 * BLUR
    level = level.clip(low, high)
    last = np.full(len(level), np.inf)
    for number in range(_FILL_STEPS):
        rates = _Rates.of(nodes, level[nodes.node] - lower, BLUR)
        got = nodes.size * np.exp(rates.rate)
        total = nodes.total(got)
        over = np.log(total / nodes.supply)
        size = np.abs(over)
        if size.max() < _FILLED:
            break
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
            level[open_] = _filled(left, lower[rows], level[open_])
            break
    return level


def _settled(nodes: _Nodes, point: _Point) -> tuple[Floats, Floats]:
    """Give what rows get and the logarithms of their weights, (p,) each.

    Weights are those of the point; who gets what, a kernel says.
    """
    top = (point.rates.least + nodes.reach)[nodes.node]
    log = (point.rates.wish - top).clip(-nodes.reach, 0.0)
    wanted, size = np.exp(nodes.full) * nodes.size, nodes.size * np.exp(log)
    got, _ = filling.fill(nodes.supply, nodes.node, wanted, size)
    return got, log


def _sharpened(
    nodes: _Nodes, begin: Begin | None, left: int
) -> tuple[_Point, float, Begin | None]:
    """Solve one sharpness after the other.

    :returns: the sharpest solution, or where one got without any; its
        sharpness; and what is left to do.
    """
    now = begin or Begin(
        np.zeros(len(nodes.user)), np.zeros(len(nodes.supply)), SOFTEST
    )
    point = _Point.of(nodes, now.cold, now.level)
    best, solved, sharpness = point, np.inf, now.sharpness
    while True:
        point, steps, is_solved = _solved(point, sharpness, left)
        left -= steps
        if is_solved:
            best, solved = point, sharpness
        if sharpness <= SHARPEST and (is_solved or left > 0):
            return best, solved, None
        if left <= 0 and not is_solved:
            break
        sharpness = max(SHARPEST, sharpness * SHARPER)
        if left <= 0:
            break
    found = best if np.isfinite(solved) else point
    return found, solved, Begin(point.cold, point.level, sharpness)


def _solved(
    point: _Point, sharpness: float, most: int
) -> tuple[_Point, int, bool]:
    """Take Newton steps, each halved until it brings the solution nearer."""
    for number in range(1, min(most, _STEPS) + 1):
        off = point.off(sharpness)
        size = float(np.abs(off).max())
        motion = _Motion.of(point)
        move = motion.towards(off, sharpness)
        part = min(1.0, _LARGEST_MOVE / max(motion.apart(move), _SAME))
        for _ in range(_HALVINGS + 1):
            tried = _Point.of(
                point.nodes,
                point.cold + part * move,
                point.level + part * motion.mean(move),
            )
            still = float(np.abs(tried.off(sharpness)).max())
            if still < size * (1 - 0.1 * part):
                break
            part /= 2
        point = tried
        if still < _SOLVED * sharpness:
            return point, number, True
    return point, min(most, _STEPS), False


@dataclasses.dataclass(frozen=True, eq=False)
class _Motion:
    """How the division moves with the weights: a linear map.

    Rows at the least weight ride with the row that has the highest rate of
    their node, as far as that one does not have all it wants.

    :ivar point: that moves.
    :ivar free: of the rows whose weights count.
    :ivar bound: of the rows that ride.
    :ivar leader: (m,) owner of the row with which they ride.
    :ivar riding: (m,) what rides on each node.
    :ivar moving: (m,) > 0, all that moves.
    """

    point: _Point
    free: '_Part'
    bound: '_Part'
    leader: Places
    riding: Floats
    moving: Floats

    @classmethod
    def of(cls, point: _Point) -> '_Motion':
        nodes, rates = point.nodes, point.rates
        count = len(nodes.supply)
        capped, follows = rounding.smaller(rates.wish, nodes.full, BLUR)
        top = (rates.least + nodes.reach)[nodes.node]
        at_top = np.flatnonzero(capped >= top - _SAME)[::-1]
        leading = np.zeros(count, dtype=np.intp)
        leading[nodes.node[at_top]] = at_top
        led = follows[leading][nodes.node]
        free = _Part.of(point, rates.by_wish)
        bound = _Part.of(point, rates.by_least * led)
        riding = np.bincount(bound.node, bound.got, count).astype(np.float64)
        moving = np.bincount(free.node, free.got, count) + riding
        return cls(
            point=point,
            free=free,
            bound=bound,
            leader=nodes.owner[leading],
            riding=riding,
            moving=np.where(moving > 0, moving, 1.0),
        )

    def mean(self, move: Floats) -> Floats:
        """How levels move with (k,) owners' weights, (m,)."""
        got = self.free.got * move[self.free.owner]
        own = np.bincount(self.free.node, got, len(self.moving))
        ridden = self.riding * move[self.leader]
        return np.asarray((own + ridden) / self.moving)

    def apart(self, move: Floats) -> float:
        """Give the largest change of a weight within a node."""
        change = move[self.free.owner] - self.mean(move)[self.free.node]
        return float(np.abs(change).max(initial=0.0))

    def got(self, move: Floats) -> Floats:
        """How much more the users get, as their owners have it, (k,)."""
        user, (free, bound) = self.point.nodes.user, (self.free, self.bound)
        mean = self.mean(move)
        ridden = mean - move[self.leader]
        own = free.got * (mean[free.node] - move[free.owner])
        change = np.bincount(free.owner, own, len(user))
        with_it = bound.got * ridden[bound.node]
        change = change + np.bincount(bound.owner, with_it, len(user))
        if self.point.nodes.alone:
            return np.asarray(change)
        return np.asarray(np.bincount(user, change)[user])

    def towards(self, off: Floats, sharpness: float) -> Floats:
        """Solve for the move after which nothing is off, (k,)."""
        slope = self.point.slope
        own = np.bincount(self.free.owner, self.free.got, len(off))

        def changed(move: Floats) -> Floats:
            return np.asarray(sharpness * move - slope * self.got(move))

        return krylov.solved(changed, off, sharpness + slope * own)


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """Some of the rows.

    :ivar node: (q,) index of each row's node.
    :ivar owner: (q,) index of its owner.
    :ivar got: (q,) as much of what it gets as moves.
    """

    node: Places
    owner: Places
    got: Floats

    @classmethod
    def of(cls, point: _Point, part: Floats) -> '_Part':
        rows = np.flatnonzero(part > _NEXT_TO_NOTHING)
        nodes = point.nodes
        return cls(
            nodes.node[rows],
            nodes.owner[rows],
            (part * point.got)[rows],
        )
