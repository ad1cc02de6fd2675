# SPDX-License-Identifier: Apache-2.0

"""Search for the max-min fair division that bounded weights can give.

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
"""Newton steps of a whole search. If they do not suffice, the sharpest
solution of them is the result."""

GIVEN_UP = 24
"""Newton steps after which a search ends if not even the first stage is
solved. The metric is not continuous then."""

_STEPS = 12
_LARGEST_MOVE = 2.0
_HALVINGS = 3
_SOLVED = 0.2
"""Part of the width ``e`` of a stage. If all owners are nearer to their
targets, the stage is solved."""

REPAIRED = 0.01
"""Part of the owners that move alone, after the steps of a round. The case is
a cloud of 5,000 nodes in which all wants change in every round. One step fits
into a round, and leaves a few of 25,000 owners far from their targets."""

_REPAIRS = 4
_NEXT_TO_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class DemandRows:
    """Demand on nodes; each row stands for VMs that want the same per vCPU.

    :ivar node: (n,) index of each row's node, ascending.
    :ivar owner: (n,) index of the owner whose heaviness decides the weight.
    :ivar user: (k,) index of each owner's user. The amount of any row of a
        user makes all owners of that user heavier.
    :ivar wanted: (n,) amount that each row wants, finite, >= 0.
    :ivar size: (n,) > 0, share of the kernel that each row has at weight 1.
    :ivar supply: (m,) amount of each node, >= 0.
    :ivar floor: (m,) logarithms of given least rates per size, of rows that
        want more; NaN where the ratio of weights decides. ``None`` if it does
        everywhere.
    """

    node: Places
    owner: Places
    user: Places
    wanted: Floats
    size: Floats
    supply: Floats
    floor: Floats | None = None

    def short(self) -> Bools:
        """Return which nodes have less than their VMs want, (m,)."""
        asked = np.bincount(self.node, self.wanted, len(self.supply))
        return np.asarray((self.supply > 0) & (asked > self.supply))


NEARLY = 0.95
"""Part of the owners whose distance from their targets decides how sharp a
solution is that continues an earlier search and is not finished. The rest may
be farther off: one owner of a thousand would otherwise hide a good
solution."""


@dataclasses.dataclass(frozen=True, eq=False)
class SearchState:
    """State from which a search continues.

    :ivar cold: (k,) logarithm by which each owner's weights are lower than
        the largest. A common number for a node has no effect.
    :ivar level: (m,) levels of nodes, see :class:`weighted.WeightedPoint`. It
        is a guess, and ``None`` if there is no guess.
    :ivar stage: index of the present stage in :data:`STAGES`.
    :ivar made: Newton steps so far.
    :ivar best: (k,) ``cold`` of the sharpest solution; ``None`` if there is
        no solution.
    :ivar width: ``e`` of the sharpest solution.
    :ivar is_moved: whether rows appeared, disappeared or changed since the
        search began.
    :ivar is_again: whether the search began again after such a change.
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
    :ivar log: (n,) logarithms of the weights. The largest weight of a node is
        0, and all weights of a node that is not short.
    :ivar sharpness: smallest ``e`` that was solved; infinite if none was.
        After a change of rows it is the distance of all but a few owners from
        their targets, if that is larger.
    :ivar at: state of the search; ``None`` if no node is short.
    :ivar is_over: whether the search is finished.
    """

    got: Floats
    log: Floats
    sharpness: float
    at: SearchState | None
    is_over: bool

    @property
    def rest(self) -> SearchState | None:
        """State from which to continue; ``None`` if the search is finished."""
        return None if self.is_over else self.at


def divide(
    rows: DemandRows,
    weigh: weighted.Weigh,
    ratio: float,
    begin: SearchState | None = None,
    steps: int = MOST_STEPS,
    *,
    repairs: bool = True,
) -> MaxMinDivision:
    """Divide all nodes.

    :param weigh: returns the heaviness of owners for amounts of rows.
    :param ratio: largest weight of a node divided by the smallest, >= 1.
    :param begin: state of an earlier call with the same or similar rows.
    :param steps: Newton steps at most, >= 1.
    :param repairs: move the farthest owners alone when steps run out.
    """
    chosen = np.flatnonzero(rows.short()[rows.node] & (rows.wanted > 0))
    got, log = rows.wanted.copy(), np.zeros(len(rows.node))
    if not chosen.size:
        return MaxMinDivision(got, log, 0.0, None, is_over=True)
    names, node = grouping.number_present_groups(rows.node[chosen])
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
        floor=None if rows.floor is None else rows.floor[names],
    )
    if begin is not None and begin.level is not None:
        begin = dataclasses.replace(begin, level=begin.level[names])
    found, sharpness, at, is_over = _search_stages(
        nodes, begin, steps, repairs=repairs
    )
    if at.level is not None:
        level = np.zeros(len(rows.supply))
        level[names] = at.level
        at = dataclasses.replace(at, level=level)
    some, log[chosen] = weighted.settled_amounts(nodes, found)
    # All that is wanted is exactly that, whatever logarithms lost.
    content = some >= got[chosen] * (1 - weighted.SAME)
    got[chosen] = np.where(content, got[chosen], some)
    return MaxMinDivision(got, log, sharpness, at, is_over)


def with_other_rows(begin: SearchState) -> SearchState:
    """Return the state from which a search of similar rows begins.

    :param begin: state of the search of the earlier rows.
    """
    return dataclasses.replace(begin, made=0, is_moved=True, is_again=False)


def at_earlier_stage(begin: SearchState, stage: int) -> SearchState:
    """Return to an earlier stage, in which steps change weights by more.

    :param stage: index of that stage. The state stays as it is if its own
        stage is not later.
    """
    if begin.stage <= stage:
        return begin
    factor = STAGES[begin.stage][0] / STAGES[stage][0]
    cold = begin.cold * factor
    return dataclasses.replace(begin, cold=cold, level=None, stage=stage)


@dataclasses.dataclass(frozen=True, eq=False)
class _BestSolution:
    """The sharpest solution of a search.

    :ivar point: the solution; ``None`` if there is none.
    :ivar sharpness: ``e`` that all but a few owners reach.
    :ivar width: ``e`` of the stage.
    """

    point: weighted.WeightedPoint | None = None
    sharpness: float = np.inf
    width: float = np.inf


def _search_stages(
    nodes: weighted.ShortNodes,
    begin: SearchState | None,
    most: int,
    *,
    repairs: bool,
) -> tuple[weighted.WeightedPoint, float, SearchState, bool]:
    """Solve one stage after the other; begin again if that fails.

    :param most: Newton steps at most.
    :returns: the sharpest solution, or the last point if there is none; its
        sharpness; the state from which to continue; and whether the search is
        finished.
    """
    state = begin or SearchState(np.zeros(len(nodes.user)), None)
    point, best, stage, made = _solve_stages(
        nodes, state, most, repairs=repairs
    )
    is_over = stage == len(STAGES) or made >= MOST_STEPS
    if best.point is None or best.sharpness > best.width:
        # Nothing was solved: what was found before may be sharper.
        best = _sharper_of_both(nodes, state, best)
    found = best.point or point or _point_in_stage(nodes, state.stage, state)
    cold = best.point.cold if best.point else None
    at = SearchState(
        found.cold if is_over or point is None else point.cold,
        found.level if is_over or point is None else point.level,
        len(STAGES) - 1 if is_over else stage,
        made,
        cold,
        best.width,
        state.is_moved,
        state.is_again,
    )
    is_new = state.is_moved and not state.is_again
    if is_over and is_new and best.sharpness > SHARPEST:
        # From elsewhere there may be no way that steps find.
        at = dataclasses.replace(
            at, cold=np.zeros(len(at.cold)), stage=0, made=0, is_again=True
        )
        if (left := most - (made - state.made)) > 0:
            return _search_stages(nodes, at, left, repairs=repairs)
        is_over = False
    return found, best.sharpness, at, is_over


def _solve_stages(
    nodes: weighted.ShortNodes, state: SearchState, most: int, *, repairs: bool
) -> tuple[weighted.WeightedPoint | None, _BestSolution, int, int]:
    """Take Newton steps, stage by stage.

    :param most: Newton steps at most.
    :returns: the last point, ``None`` without a step; the sharpest solution;
        the index of the stage; and the number of all steps.
    """
    point, best, is_warm = None, _BestSolution(), state.is_moved
    stage, made = state.stage, state.made
    end = min(made + most, MOST_STEPS)
    while made < end and stage < len(STAGES):
        here = STAGES[stage][0]
        if point is None or point.nodes.blur != STAGES[stage][1]:
            point = _point_in_stage(nodes, stage, point or state)
        point, steps, is_solved = _take_newton_steps(
            point,
            here,
            end - made,
            NEARLY if is_warm and here > SHARPEST else 1.0,
        )
        made += steps
        if repairs and is_warm and not is_solved and here <= SHARPEST:
            point = _take_repair_steps(point, here)
        reached = here if is_solved else np.inf
        if is_warm and not is_solved:
            reached = _distance_from_targets(point, here)
        if is_solved or reached < best.sharpness:
            best = _BestSolution(point, reached, here)
        if is_solved or (made < end and (stage > 0 or made >= GIVEN_UP)):
            stage += 1
    return point, best, stage, made


def _sharper_of_both(
    nodes: weighted.ShortNodes, state: SearchState, best: _BestSolution
) -> _BestSolution:
    """Return the sharper of the newest solution and the earlier one."""
    if state.best is None:
        return best
    stage = max(
        n for n, (width, _) in enumerate(STAGES) if width >= state.width
    )
    point = _point_in_stage(
        nodes, stage, dataclasses.replace(state, cold=state.best)
    )
    there = (
        _distance_from_targets(point, state.width)
        if state.is_moved
        else state.width
    )
    if there > best.sharpness:
        return best
    return _BestSolution(point, there, state.width)


def _distance_from_targets(
    point: weighted.WeightedPoint, width: float
) -> float:
    """Return the largest distance of owners from their targets.

    Without the few owners that are farthest off, see :data:`NEARLY`.
    """
    off = float(np.quantile(np.abs(point.off(width)), NEARLY))
    return width + max(off - _SOLVED * width, 0.0)


def _point_in_stage(
    nodes: weighted.ShortNodes,
    stage: int,
    begin: SearchState | weighted.WeightedPoint,
) -> weighted.WeightedPoint:
    """Divide with the weights of a state and the blur of a stage."""
    _, blur = STAGES[stage]
    count = len(nodes.supply)
    level = np.zeros(count) if begin.level is None else begin.level
    return weighted.WeightedPoint.of(nodes.blurred(blur), begin.cold, level)


def _take_newton_steps(
    point: weighted.WeightedPoint, sharpness: float, most: int, nearly: float
) -> tuple[weighted.WeightedPoint, int, bool]:
    """Take Newton steps. Each is halved until owners are nearer to targets.

    :param sharpness: ``e`` of the stage.
    :param most: steps at most.
    :param nearly: part of the owners that must be near their targets.
    :returns: the last point, the number of steps, and whether the stage is
        solved.
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


def _take_repair_steps(
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
        tried = _take_step_of_some(point, far, off, sharpness)
        now = tried.off(sharpness)
        if not float(now @ now) < float(off @ off):
            break
        point, off = tried, now
    return point


def _take_step_of_some(
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
    """Change of a division by a small change of weights: a linear map.

    The rate of a row at the least weight follows that of the *leader*, the
    row with the highest rate of the node, unless the leader has all it wants.

    :ivar point: division that changes.
    :ivar free: rows between the bounds.
    :ivar bound: rows at the least weight.
    :ivar leader: (m,) owner of the leader of each node.
    :ivar riding: (m,) amount of rows at the least weight.
    :ivar moving: (m,) > 0, amount of all rows whose rates change.
    """

    point: weighted.WeightedPoint
    free: '_ChangingRows'
    bound: '_ChangingRows'
    leader: Places
    riding: Floats
    moving: Floats

    @classmethod
    def of(cls, point: weighted.WeightedPoint) -> '_Motion':
        nodes, rates = point.nodes, point.rates
        count = len(nodes.supply)
        capped, follows = rounding.smooth_minimum(
            rates.wish, nodes.full, nodes.blur
        )
        top = (rates.least + nodes.reach)[nodes.node]
        at_top = np.flatnonzero(capped >= top - weighted.SAME)[::-1]
        leading = np.zeros(count, dtype=np.intp)
        leading[nodes.node[at_top]] = at_top
        led = follows[leading][nodes.node]
        free = _ChangingRows.of(point, rates.by_wish)
        bound = _ChangingRows.of(point, rates.by_least * led)
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
        """Return the change of levels, (m,).

        :param move: (k,) change of the owners' ``cold``.
        """
        got = self.free.got * move[self.free.owner]
        own = np.bincount(self.free.node, got, len(self.moving))
        ridden = self.riding * move[self.leader]
        return np.asarray((own + ridden) / self.moving)

    def apart(self, move: Floats) -> float:
        """Return the largest change of a weight relative to its node's."""
        change = move[self.free.owner] - self.mean(move)[self.free.node]
        return float(np.abs(change).max(initial=0.0))

    def got(self, move: Floats) -> Floats:
        """Return the change of the amount of each owner's user, (k,)."""
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
        """Return the change of ``cold`` that brings owners to their targets.

        :param off: (k,) distances from the targets.
        :param moving: (k,) owners whose weights may change; ``None`` for all.
        :returns: (k,).
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

        return krylov.solve(changed, off, sharpness + slope * own)


@dataclasses.dataclass(frozen=True, eq=False)
class _ChangingRows:
    """Rows whose rates change.

    :ivar node: (q,) index of each row's node.
    :ivar owner: (q,) index of each row's owner.
    :ivar got: (q,) part of each row's amount that changes.
    """

    node: Places
    owner: Places
    got: Floats

    @classmethod
    def of(
        cls, point: weighted.WeightedPoint, part: Floats
    ) -> '_ChangingRows':
        rows = np.flatnonzero(part > _NEXT_TO_NOTHING)
        nodes = point.nodes
        return cls(
            nodes.node[rows],
            nodes.owner[rows],
            (part * point.got)[rows],
        )
