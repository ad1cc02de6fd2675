# SPDX-License-Identifier: Apache-2.0

"""Where the CPUs of all nodes should go, from what users want on every node.

It follows from what is wanted and what nodes have alone. It does not depend on
who has how much now, and so neither on when that was reported: nodes that
know the same see the same end.

Only the CPU is foreseen: of nothing else it is told what VMs want.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.decide import exempt_levels
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping
from nova_fairness.shares import maxmin
from nova_fairness.shares import waiting

SHORT = 1.01
"""Part of what a node has, above which wants are a shortage. On small nodes,
0.05 CPUs are more than 1 %."""

LACKING = 0.05
"""The other limit, in CPUs: one vCPU that lacks more than noise counts,
however large the node is. The case is four users of one vCPU on a full node of
256 CPUs."""

UNMET = 1.1
"""Part of what users of a node have, above which wants are a shortage where
users have nearly all that there is: users cannot have what the host itself
needs."""

SHARP = 0.05
"""Part of their heaviness, by a natural logarithm of weights. If users would
differ by more, feedback decides."""

STEPS = maxmin.MOST_STEPS
"""In which all but the largest clouds are worked out at once."""

PER_ROUND_S = 0.1
"""CPU time for the search in a round; an unfinished search goes on in the next
one."""

AFFORDABLE = 0.3
"""Part of a plugin's deadline that a step of the search may take; the next one
may take three times as long. A slower metric would bring itself into
quarantine."""

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')

LOST = 0.5
"""Sharpness up to which a search goes on after a change; a search that is
further off starts again."""

FEW = 0.01
"""Part of the pairs of a user and a node that are known: where not more came
or went, and no user is new, a search goes on from where it stood. The case is
a start or a deletion in every round on 1,000 nodes with 20 users each, where
going back some stages would take most of a round."""

_AGAIN = 4
"""Stage of :mod:`.maxmin` from which a search goes on after more cells came or
went: most of them are where they should be."""

_MORE = 1e-3
"""Part of the usage of a user by which the slope of a metric is probed."""


@dataclasses.dataclass(frozen=True, eq=False)
class ForesightSearch:
    """How far it was worked out what follows from some knowledge.

    :ivar knowledge: newest.
    :ivar end: as it is known by now.
    :ivar at: where the search is; ``None`` where nothing is short.
    :ivar is_over: whether nothing is left to do.
    :ivar turns: where VMs have weight 1: how far levels are.
    """

    knowledge: foresight_model.CpuKnowledge
    end: foresight_model.CpuTarget
    at: maxmin.Begin | None
    is_over: bool
    turns: '_Turns | None' = None

    @property
    def is_useful(self) -> bool:
        """Tell whether the end is near enough to decide by it."""
        return self.end.sharpness <= SHARP


Make = Callable[
    [foresight_model.CpuKnowledge, ForesightSearch | None, int],
    tuple[ForesightSearch, float],
]
"""Goes on from a search, with what is known now, for so many steps at most,
and says how much CPU time that took, seconds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """A search that follows what is known, round by round.

    :ivar work: how far it is; ``None`` before the first round, and where a
        step took too long.
    :ivar last: by which a node decides: the newest that is useful as long as
        the same users are on the same nodes, otherwise the work.
    """

    work: ForesightSearch | None = None
    last: ForesightSearch | None = None

    def followed(
        self, known: foresight_model.CpuKnowledge, make: Make, longest_s: float
    ) -> 'Course':
        """Make a round: one step, and as many more as there is time for.

        The wants and places of users may change at any time: the search goes
        on from where it is. While next to nothing changes, the end that was
        found stays.

        :param longest_s: that a step may take.
        """
        work, last = self.work, self.last
        if last is not None and not last.knowledge.has_cells_of(known):
            last = None
        if work is not None and work.knowledge.is_like(known):
            if work.is_over and last is not None:
                return self
            known = work.knowledge
        found, step_s = make(known, work, 1)
        if step_s > longest_s:
            return Course()
        more = min(int(PER_ROUND_S / max(step_s, 1e-9)), STEPS) - 1
        if not found.is_over and more > 0:
            found, _ = make(known, found, more)
        # What is not finished is better than what was fair before.
        if last is None or found.is_useful:
            last = found
        return Course(found, last)


def searched(
    knowledge: foresight_model.CpuKnowledge,
    ratio: float,
    before: ForesightSearch | None = None,
    steps: int = STEPS,
) -> ForesightSearch:
    """Work out the weighted max-min allocation that weights can reach.

    With a metric that is no share it is the one in which users who compete
    are equally heavy. Several calls can share the work.

    :param ratio: largest by smallest weight of a node, >= 1.
    :param before: the call before, ``None`` for the first. Users, nodes and
        what is wanted may have changed since: the search goes on from where
        it is.
    :param steps: of Newton's method that are made at most, >= 1.
    """
    supply, short = _supply(knowledge)
    heaviness = _Heaviness(knowledge)
    demand = knowledge.demand
    mixed = exempt_levels.MixedRows.of(
        knowledge, supply, short, heaviness.owner, heaviness.user, ratio
    )
    if mixed is not None:
        return _searched_by_turns(knowledge, mixed, heaviness, before, steps)
    rows = maxmin.DemandRows(
        node=knowledge.node[demand.cell],
        owner=heaviness.owner[demand.cell],
        user=heaviness.user,
        wanted=demand.wanted,
        size=demand.vcpus,
        supply=np.where(short, supply, np.inf),
    )
    begin = None if before is None else _carried(before, knowledge)
    found = maxmin.divide(rows, heaviness, ratio, begin, steps)
    end = _target(knowledge, found.log, found.got, short, found.sharpness)
    return ForesightSearch(knowledge, end, found.at, found.is_over)


@dataclasses.dataclass(frozen=True, eq=False)
class _Turns:
    """How far a search is where some VMs have weight 1.

    :ivar made: turns that are over.
    :ivar levels: (m,) of the turn that is being made; ``None`` in the first,
        in which all VMs are taken as steered.
    :ivar best: of the turns that are over: what users get; ``None`` before.
    :ivar heavy: (k,) how heavy owners are with it.
    :ivar known: (m,) levels of the best, also of a search before.
    """

    made: int = 0
    levels: usage_model.Scalars | None = None
    best: foresight_model.CpuTarget | None = None
    heavy: usage_model.Scalars | None = None
    known: usage_model.Scalars | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether no turn is left."""
        return self.made >= exempt_levels.TURNS

    def after(
        self,
        rows: exempt_levels.MixedRows,
        found: maxmin.MaxMinDivision,
        tried: foresight_model.CpuTarget,
        heavy: usage_model.Scalars,
        steered: usage_model.Scalars,
    ) -> '_Turns':
        """After a turn.

        :param tried: its result with real weights.
        :param heavy: (k,) of owners with that.
        :param steered: (k,) of owners with what was found.
        """
        best, least, known = self.best, self.heavy, self.known
        if least is None or exempt_levels.is_better(heavy, least):
            best, least = tried, heavy
            known = known if self.levels is None else self.levels
        if self.levels is None:
            levels = rows.begin(found, known)
        else:
            levels = rows.moved(self.levels, found, steered)
        return _Turns(self.made + 1, levels, best, least, known)


def _searched_by_turns(
    knowledge: foresight_model.CpuKnowledge,
    rows: exempt_levels.MixedRows,
    heaviness: '_Heaviness',
    before: ForesightSearch | None,
    steps: int,
) -> ForesightSearch:
    """As :func:`searched`, where some VMs on short nodes have weight 1."""
    at = None if before is None else _carried(before, knowledge)
    turns = _Turns()
    if before is not None and before.turns is not None:
        turns = before.turns
        if before.knowledge is not knowledge:
            turns = _Turns(known=turns.known)
    left = steps
    while True:
        found = rows.divided(turns.levels, heaviness, at, left)
        made = 0 if at is None else at.made
        left -= 1 if found.at is None else max(1, found.at.made - made)
        log = rows.weights(found, turns.levels)
        got = rows.got(log)
        end = _target(knowledge, log, got, rows.short, found.sharpness)
        at = found.at
        if found.is_over:
            turns = turns.after(
                rows, found, end, heaviness(got)[0], heaviness(found.got)[0]
            )
            if at is not None and not turns.is_over:
                at = dataclasses.replace(
                    at, made=0, is_moved=True, is_again=False
                )
        if left < 1 or turns.is_over or at is None:
            is_over = turns.is_over or at is None
            return ForesightSearch(
                knowledge, turns.best or end, at, is_over, turns
            )


def _target(
    knowledge: foresight_model.CpuKnowledge,
    log: usage_model.Scalars,
    got: usage_model.Scalars,
    short: resources.Mask,
    sharpness: float,
) -> foresight_model.CpuTarget:
    """Put together what rows of the demand have.

    :param log: (p,) logarithms of their weights.
    :param got: (p,) CPU time.
    """
    due = np.bincount(knowledge.demand.cell, got, len(knowledge.node))
    return foresight_model.CpuTarget(
        _centred(knowledge, log), due.astype(np.float64), short, sharpness
    )


def _carried(
    before: ForesightSearch, knowledge: foresight_model.CpuKnowledge
) -> maxmin.Begin | None:
    """Where to go on with other knowledge.

    New users begin in the middle of all.
    """
    if before.knowledge is knowledge or before.at is None:
        return before.at
    if before.at.best is not None and before.end.sharpness > LOST:
        return None
    at = dataclasses.replace(before.at, made=0, is_moved=True, is_again=False)
    if at.best is not None and not before.is_useful:
        at = maxmin.widened(at, _AGAIN - 2)
    if before.knowledge.has_cells_of(knowledge):
        return at
    old = before.knowledge
    if (old.weigh_users is None) is not (knowledge.weigh_users is None):
        return None
    nodes = _places(old.node_names(), knowledge.node_names())
    users = _places(old.user_names(), knowledge.user_names())
    cells = _cells(old, knowledge, nodes, users)
    rows = cells
    if knowledge.weigh_users is not None:
        rows = _users(old, knowledge, users)
    # A new user can be far from where they belong, and steps of the last
    # stages do not lead far.
    is_near = bool((rows >= 0).all()) and _are_few(old, cells)

    def moved(cold: usage_model.Scalars) -> usage_model.Scalars:
        return np.where(rows < 0, np.median(cold), cold[rows])

    return dataclasses.replace(
        at,
        cold=moved(at.cold),
        level=None if at.level is None else at.level[nodes],
        stage=at.stage if is_near else min(at.stage, _AGAIN),
        best=None if at.best is None else moved(at.best),
    )


def _places(
    old: Sequence[foresight_model.Name], new: Sequence[foresight_model.Name]
) -> usage_model.Indices:
    """Say where names were before; -1 where they were not."""
    if old == new:
        return np.arange(len(new))
    known = {name: place for place, name in enumerate(old)}
    return np.array([known.get(name, -1) for name in new], dtype=np.intp)


def _users(
    old: foresight_model.CpuKnowledge,
    new: foresight_model.CpuKnowledge,
    users: usage_model.Indices,
) -> usage_model.Indices:
    """Earlier rows of the users, in the order of :class:`_Heaviness`; -1 for
    new ones.

    :param users: of :func:`_places`.
    """
    before, _ = grouping.present(old.user)
    now, _ = grouping.present(new.user)
    return _found(before, users[now])


def _cells(
    old: foresight_model.CpuKnowledge,
    new: foresight_model.CpuKnowledge,
    nodes: usage_model.Indices,
    users: usage_model.Indices,
) -> usage_model.Indices:
    """Earlier rows of the cells; -1 for new ones.

    :param nodes: of :func:`_places`; so are ``users``.
    """
    width = len(old.user_names())
    node, user = nodes[new.node], users[new.user]
    wanted = np.where((node < 0) | (user < 0), -1, node * width + user)
    return _found(old.node * width + old.user, wanted)


def _found(
    before: usage_model.Indices, wanted: usage_model.Indices
) -> usage_model.Indices:
    """Places in an ascending array; -1 for what is not there."""
    place = np.searchsorted(before, wanted).clip(max=len(before) - 1)
    return np.where(before[place] == wanted, place, -1)


def _are_few(
    old: foresight_model.CpuKnowledge, cells: usage_model.Indices
) -> bool:
    """Tell whether next to no cells came or went.

    :param cells: of :func:`_cells`.
    """
    kept = int(np.count_nonzero(cells >= 0))
    return max(len(cells), len(old.node)) - kept <= FEW * kept


def _supply(
    knowledge: foresight_model.CpuKnowledge,
) -> tuple[usage_model.Scalars, resources.Mask]:
    """Amounts of each node that users can have, and whether they want more."""
    wanted = knowledge.wanted[:, CPU_TIME]
    whole = knowledge.supply[:, CPU_TIME]
    asked = np.bincount(knowledge.node, wanted, len(whole))
    given = knowledge.given()[:, CPU_TIME]
    busy = waiting.BUSY_WITH_STALL * whole
    unmet = (given >= busy) & (asked >= UNMET * given)
    enough = np.minimum(SHORT * whole, whole + LACKING * knowledge.one_cpu)
    short = ((asked >= enough) | unmet) & (asked > 0)
    return np.where(short, given.clip(busy, whole), whole), short


class _Heaviness:
    """How heavy users, or their cells, would be with other CPU time.

    :ivar owner: (n,) index, of each cell, of what is weighed: its user where
        the metric looks at users' sums alone, itself elsewhere.
    :ivar user: (k,) index of the user of each.
    """

    def __init__(self, knowledge: foresight_model.CpuKnowledge) -> None:
        names, self._user = grouping.present(knowledge.user)
        every = np.arange(len(knowledge.node))
        if knowledge.weigh_users is None:
            self.owner, self.user = every, self._user
            self._weigh, self._used = knowledge.weigh, knowledge.wanted
        else:
            self.owner, self.user = self._user, np.arange(len(names))
            self._weigh = knowledge.weigh_users
            self._used = grouping.sum_by(
                self._user, knowledge.wanted, len(names)
            )
        self._row = self.owner[knowledge.demand.cell]

    def __call__(
        self, got: usage_model.Scalars
    ) -> tuple[usage_model.Scalars, usage_model.Scalars]:
        """Weigh what the rows of the demand would get."""
        cpu = np.bincount(self._row, got, len(self.user)).astype(np.float64)
        heavy = self._with(cpu)
        of_user = np.bincount(self.user, cpu)[self.user]
        more = self._with(cpu + _MORE * cpu)
        step = np.where(of_user > 0, _MORE * of_user, 1.0)
        return heavy, ((more - heavy) / step).clip(0.0)

    def _with(self, cpu: usage_model.Scalars) -> usage_model.Scalars:
        used = self._used.copy()
        used[:, CPU_TIME] = cpu
        return self._weigh(used)


def _centred(
    knowledge: foresight_model.CpuKnowledge, log: usage_model.Scalars
) -> usage_model.Scalars:
    """One weight for each cell, neutral in the middle of its node's."""
    nodes = len(knowledge.supply)
    cell = knowledge.demand.cell
    first = np.searchsorted(cell, np.arange(len(knowledge.node)))
    high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(high, knowledge.node[cell], log)
    np.minimum.at(low, knowledge.node[cell], log)
    known = np.isfinite(high)
    middle = np.where(known, high, 0.0) + np.where(known, low, 0.0)
    return np.asarray(log[first] - middle[knowledge.node] / 2)
