# SPDX-License-Identifier: Apache-2.0

"""The max-min fair division of many nodes that bounded weights can reach.

A kernel gives a VM that wants more ``level x size x weight``, with one level
for all VMs of a node. The division sought is the one in which the lightest
have as much as any weights can give them, then the next, and so on: on every
node all competing owners are equally heavy, but for those at the least weight,
who are heavier, and those who have all they want.

It is found as the end of a sequence. With a *sharpness* ``1/e`` every weight
is ``exp(-t/e)`` of its owner's heaviness ``t``, within the bounds. For each
``e`` that is a system of equations, which Newton's method solves; the smaller
``e``, the nearer to equal heaviness. Each solution is the begin of the next.
As in interior point methods bounds are rounded off, so that the number of
steps does not grow with the number of nodes. The result does not depend on the
division before.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.shares import grouping
from nova_fairness.shares import krylov
from nova_fairness.shares import rounding
from nova_fairness.shares import weighted

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

STAGES = (
    (0.5, 0.1),
    (0.15, 0.1),
    (0.045, 0.1),
    (0.0135, 0.1),
    (0.004, 0.1),
    (0.003, 0.05),
    (0.003, 0.02),
)
"""Widths solved one after the other: ``e``, and over how much (natural
logarithm of a rate) bounds are rounded off. In the end owners who compete
differ by at most ``e x log(ratio)``: 1 % of their heaviness for a ratio of
20."""

SHARPEST = STAGES[-1][0]

MOST_STEPS = 100
"""Newton steps in all. Where they do not suffice, the sharpest solution
that was found counts."""

GIVEN_UP = 24
"""Steps after which nothing is sought any more if not even the first stage was
solved: the metric jumps."""

_STEPS = 12
_LARGEST_MOVE = 2.0
_HALVINGS = 3
_SOLVED = 0.2
"""Part of the width of a stage, from which the next stage may begin."""

REPAIRED = 0.01
"""Part of the owners that are moved alone, on their own nodes, after the steps
of a round. The case is a cloud of 5,000 nodes in which all wants change in
every round: one step is all that fits into a round, and leaves a few owners of
25,000 far from where they belong."""

_REPAIRS = 4
_NEXT_TO_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class DemandRows:
    """Demand on nodes; each row stands for VMs that are alike.

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
        """Tell which nodes have less than their VMs want, (m,)."""
        asked = np.bincount(self.node, self.wanted, len(self.supply))
        return np.asarray((self.supply > 0) & (asked > self.supply))


NEARLY = 0.95
"""Part of the owners that must be as near to their heaviness as is said of a
solution that is begun elsewhere and not finished: one owner of a thousand may
not be there yet."""


@dataclasses.dataclass(frozen=True, eq=False)
class Begin:
    """From where a search goes on.

    :ivar cold: (k,) by which the logarithms of each owner's weights are
        lower, up to a number for each node.
    :ivar level: (m,) of nodes, see :class:`weighted.WeightedPoint`; any number
        where it is not known, and ``None`` if it is known of none.
    :ivar stage: number of the stage that is being solved.
    :ivar made: steps so far.
    :ivar best: (k,) as ``cold``, of the sharpest that was found; ``None`` if
        nothing was.
    :ivar width: its ``e``.
    :ivar is_moved: whether rows came, went or changed since.
    :ivar is_again: whether it was begun again since.
    """

    cold: Floats
    level: Floats | None
    stage: int = 0
    made: int = 0
    best: Floats | None = None
    width: float = np.inf
    is_moved: bool = False
    is_again: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class MaxMinDivision:
    """Result of the search.

    :ivar got: (n,) amount of each row, at most its want.
    :ivar log: (n,) logarithms of the weights, 0 the largest of a node; 0 on
        nodes that are not short.
    :ivar sharpness: last ``e`` that was solved; with rows that are others
        now, how far all but a few owners are from where they shall be, if
        that is more. Infinite if none was.
    :ivar at: where the search is; ``None`` where nothing is short.
    :ivar is_over: whether nothing is left to do.
    """

    got: Floats
    log: Floats
    sharpness: float
    at: Begin | None
    is_over: bool

    @property
    def rest(self) -> Begin | None:
        """Where to go on; ``None`` if nothing is left to do."""
        return None if self.is_over else self.at


def divide(
    rows: DemandRows,
    weigh: weighted.Weigh,
    ratio: float,
    begin: Begin | None = None,
    steps: int = MOST_STEPS,
) -> MaxMinDivision:
    """Divide all nodes.

    :param weigh: how heavy owners would be.
    :param ratio: of the largest to the smallest weight of a node, >= 1.
    :param begin: what an earlier call left to do, or where one ended whose
        rows were nearly the same.
    :param steps: of Newton's method that are made at most, >= 1.
    """
    short = rows.short()
    chosen = np.flatnonzero(short[rows.node] & (rows.wanted > 0))
    got, log = rows.wanted.copy(), np.zeros(len(rows.node))
    if not chosen.size:
        return MaxMinDivision(got, log, 0.0, None, is_over=True)
    names, node = grouping.present(rows.node[chosen])
    nodes = weighted.ShortNodes(
        rows=chosen,
        node=node,
        owner=rows.owner[chosen],
        user=rows.user,
        full=np.log(rows.wanted[chosen] / rows.size[chosen]),
        size=rows.size[chosen],
        supply=rows.supply[names],
        reach=float(np.log(ratio)),
        weigh=weigh,
        idle=got.copy(),
        blur=STAGES[0][1],
    )
    if begin is not None and begin.level is not None:
        begin = dataclasses.replace(begin, level=begin.level[names])
    found, sharpness, at, is_over = _sharpened(nodes, begin, steps)
    if at.level is not None:
        level = np.zeros(len(rows.supply))
        level[names] = at.level
        at = dataclasses.replace(at, level=level)
    some, log[chosen] = weighted.settled(nodes, found)
    # All that is wanted is exactly that, whatever logarithms lost.
    content = some >= got[chosen] * (1 - weighted.SAME)
    got[chosen] = np.where(content, got[chosen], some)
    return MaxMinDivision(got, log, sharpness, at, is_over)


def widened(begin: Begin, stage: int) -> Begin:
    """Go back to an earlier stage, in which steps lead further.

    :param stage: to which; nothing changes if the search is not beyond.
    """
    if begin.stage <= stage:
        return begin
    factor = STAGES[begin.stage][0] / STAGES[stage][0]
    cold = begin.cold * factor
    return dataclasses.replace(begin, cold=cold, level=None, stage=stage)


@dataclasses.dataclass(frozen=True, eq=False)
class _Sharpest:
    """The sharpest solution, if any.

    :ivar sharpness: of all but a few owners.
    :ivar width: its ``e``.
    """

    point: weighted.WeightedPoint | None = None
    sharpness: float = np.inf
    width: float = np.inf


def _sharpened(
    nodes: weighted.ShortNodes, begin: Begin | None, most: int
) -> tuple[weighted.WeightedPoint, float, Begin, bool]:
    """Solve one stage after the other.

    :returns: the sharpest solution, or where one got without any; its
        sharpness; where to go on; and whether nothing is left to do.
    """
    now = begin or Begin(np.zeros(len(nodes.user)), None)
    point, best, stage, made = _staged(nodes, now, most)
    is_over = stage == len(STAGES) or made >= MOST_STEPS
    if best.point is None or best.sharpness > best.width:
        # Nothing was solved: what was found before may be sharper.
        best = _carried(nodes, now, best)
    found = best.point or point or _at(nodes, now.stage, now)
    cold = best.point.cold if best.point else None
    at = Begin(
        found.cold if is_over or point is None else point.cold,
        found.level if is_over or point is None else point.level,
        len(STAGES) - 1 if is_over else stage,
        made,
        cold,
        best.width,
        now.is_moved,
        now.is_again,
    )
    is_new = now.is_moved and not now.is_again
    if is_over and is_new and best.sharpness > SHARPEST:
        # From elsewhere there may be no way that steps find.
        at = dataclasses.replace(
            at, cold=np.zeros(len(at.cold)), stage=0, made=0, is_again=True
        )
        if (left := most - (made - now.made)) > 0:
            return _sharpened(nodes, at, left)
        is_over = False
    return found, best.sharpness, at, is_over


def _staged(
    nodes: weighted.ShortNodes, now: Begin, most: int
) -> tuple[weighted.WeightedPoint | None, _Sharpest, int, int]:
    """Take steps, stage by stage.

    :returns: where one got, ``None`` without a step; the sharpest solution;
        the stage; and steps in all.
    """
    point, best, is_warm = None, _Sharpest(), now.is_moved
    stage, made = now.stage, now.made
    end = min(made + most, MOST_STEPS)
    while made < end and stage < len(STAGES):
        here = STAGES[stage][0]
        if point is None or point.nodes.blur != STAGES[stage][1]:
            point = _at(nodes, stage, point or now)
        point, steps, is_solved = _solved(
            point,
            here,
            end - made,
            NEARLY if is_warm and here > SHARPEST else 1.0,
        )
        made += steps
        if is_warm and not is_solved and here <= SHARPEST:
            point = _repaired(point, here)
        reached = here if is_solved else np.inf
        if is_warm and not is_solved:
            reached = _distance(point, here)
        if is_solved or reached < best.sharpness:
            best = _Sharpest(point, reached, here)
        if is_solved or (made < end and (stage > 0 or made >= GIVEN_UP)):
            stage += 1
    return point, best, stage, made


def _carried(
    nodes: weighted.ShortNodes, now: Begin, best: _Sharpest
) -> _Sharpest:
    """The sharper of what was found now and what was before."""
    if now.best is None:
        return best
    stage = max(n for n, (width, _) in enumerate(STAGES) if width >= now.width)
    point = _at(nodes, stage, dataclasses.replace(now, cold=now.best))
    there = _distance(point, now.width) if now.is_moved else now.width
    if there > best.sharpness:
        return best
    return _Sharpest(point, there, now.width)


def _distance(point: weighted.WeightedPoint, width: float) -> float:
    """Largest distance of owners from their targets, but for a few owners."""
    off = float(np.quantile(np.abs(point.off(width)), NEARLY))
    return width + max(off - _SOLVED * width, 0.0)


def _at(
    nodes: weighted.ShortNodes,
    stage: int,
    begin: Begin | weighted.WeightedPoint,
) -> weighted.WeightedPoint:
    """Divide with bounds rounded off as in a stage."""
    _, blur = STAGES[stage]
    count = len(nodes.supply)
    level = np.zeros(count) if begin.level is None else begin.level
    return weighted.WeightedPoint.of(nodes.blurred(blur), begin.cold, level)


def _solved(
    point: weighted.WeightedPoint, sharpness: float, most: int, nearly: float
) -> tuple[weighted.WeightedPoint, int, bool]:
    """Take Newton steps, each halved until it brings the solution nearer.

    :param nearly: part of the owners that must be where they shall be.
    """
    off = point.off(sharpness)
    for number in range(1, min(most, _STEPS) + 1):
        size = float(np.abs(off).max())
        motion = _Motion.of(point)
        move = motion.towards(off, sharpness)
        part = min(1.0, _LARGEST_MOVE / max(motion.apart(move), weighted.SAME))
        for _ in range(_HALVINGS + 1):
            tried = weighted.WeightedPoint.of(
                point.nodes,
                point.cold + part * move,
                point.level + part * motion.mean(move),
            )
            off = tried.off(sharpness)
            if float(np.abs(off).max()) < size * (1 - 0.1 * part):
                break
            part /= 2
        point = tried
        if np.quantile(np.abs(off), nearly) < _SOLVED * sharpness:
            return point, number, True
    return point, min(most, _STEPS), False


def _repaired(
    point: weighted.WeightedPoint, sharpness: float
) -> weighted.WeightedPoint:
    """Take steps that move only the owners who are farthest off.

    Such a step divides only the nodes of these owners again, so that it costs
    a small part of a step for all.
    """
    off = point.off(sharpness)
    for _ in range(_REPAIRS):
        apart = np.abs(off)
        far = apart > max(
            _SOLVED * sharpness, float(np.quantile(apart, 1 - REPAIRED))
        )
        if not far.any():
            break
        tried = _redivided(point, far, off, sharpness)
        now = tried.off(sharpness)
        if not float(now @ now) < float(off @ off):
            break
        point, off = tried, now
    return point


def _redivided(
    point: weighted.WeightedPoint,
    far: Bools,
    off: Floats,
    sharpness: float,
) -> weighted.WeightedPoint:
    """Take one step of Newton's method that moves some owners.

    :param far: (k,) these owners.
    :param off: (k,) of :meth:`.weighted.WeightedPoint.off`.
    """
    nodes = point.nodes
    chosen = np.zeros(len(nodes.supply), dtype=np.bool_)
    chosen[nodes.node[far[nodes.owner]]] = True
    rows = np.flatnonzero(chosen[nodes.node])
    some = point.restricted(chosen, rows)
    motion = _Motion.of(some)
    move = motion.towards(off, sharpness, far)
    part = min(1.0, _LARGEST_MOVE / max(motion.apart(move), weighted.SAME))
    return point.redivided(
        chosen,
        rows,
        point.cold + part * move,
        some.level + part * motion.mean(move),
    )


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

    point: weighted.WeightedPoint
    free: '_Part'
    bound: '_Part'
    leader: Places
    riding: Floats
    moving: Floats

    @classmethod
    def of(cls, point: weighted.WeightedPoint) -> '_Motion':
        nodes, rates = point.nodes, point.rates
        count = len(nodes.supply)
        capped, follows = rounding.smaller(rates.wish, nodes.full, nodes.blur)
        top = (rates.least + nodes.reach)[nodes.node]
        at_top = np.flatnonzero(capped >= top - weighted.SAME)[::-1]
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
        """The largest change of a weight within a node."""
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

    def towards(
        self, off: Floats, sharpness: float, moving: Bools | None = None
    ) -> Floats:
        """Solve for the move after which nothing is off, (k,).

        :param moving: (k,) owners that move; ``None`` for all.
        """
        slope = self.point.slope
        own = np.bincount(self.free.owner, self.free.got, len(off))
        if moving is not None:
            off = np.where(moving, off, 0.0)

        def changed(move: Floats) -> Floats:
            found = sharpness * move - slope * self.got(move)
            if moving is None:
                return np.asarray(found)
            return np.where(moving, found, sharpness * move)

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
    def of(cls, point: weighted.WeightedPoint, part: Floats) -> '_Part':
        rows = np.flatnonzero(part > _NEXT_TO_NOTHING)
        nodes = point.nodes
        return cls(
            nodes.node[rows],
            nodes.owner[rows],
            (part * point.got)[rows],
        )
