# SPDX-License-Identifier: Apache-2.0

"""Fair division of the CPUs of all nodes, from the wants of all users.

The division depends only on wants and on the CPUs of nodes. It does not depend
on the present use of VMs, nor on the time of a report: agents with the same
reports compute the same division.

Only CPUs are divided, because reports contain wants of CPU time alone.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import exempt_levels
from nova_fairness.shares import grouping
from nova_fairness.shares import maxmin
from nova_fairness.shares import waiting

SHORT = 1.01
"""Part of a node's CPUs that users must want for the node to be short. On a
node of less than five CPUs this is less than 0.05 CPUs too much."""

LACKING = 0.05
"""CPUs that users must want beyond those of a node for the node to be short,
if that is less than by :data:`SHORT`. So one vCPU that lacks more than noise
counts on a node of any size. The case is four users of one vCPU on a full node
of 256 CPUs."""

UNMET = 1.1
"""Wants of the users of a node, as a part of their use, from which the node
is short if their use is nearly all of its CPUs. The rest is used by the host
itself, and users cannot have it."""

SHARP = 0.05
"""Largest sharpness ``e`` of a usable division: the part of their heaviness
by which users may differ for each unit of the natural logarithm of weights. If
a division is less sharp, feedback decides."""

STEPS = maxmin.MOST_STEPS
"""Newton steps of one call at most. They are enough for a whole search
without levels."""

PER_ROUND_S = 0.07
"""CPU time of the search in one round, seconds. The next round continues a
search that is not finished. The case is a cloud of 1,000 nodes with exempt
VMs: the reports take 30 ms, and a round should take less than 0.1 s."""

AFFORDABLE = 0.3
"""Part of a plugin's deadline that one step of the search may take. The next
step can take three times as long, and a metric that exceeds the deadline is
put into quarantine."""

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
CPU_TIME = resources.RESOURCES.index('cpu_time')

LOST = 0.5
"""Largest sharpness ``e`` of a search that continues after a change. Another
search starts from the beginning."""

FEW = 0.01
"""Part of the cells, the pairs of a user and a node. If no user is new, and
at most this part of the cells appeared or disappeared, a search continues in
its present stage. The case is a start or a deletion in every round on 1,000
nodes with 20 users each: a return to an earlier stage would take most of each
round."""

_RESTART_STAGE = 4
"""Stage of :mod:`.maxmin` in which a search continues after more cells
appeared or disappeared. The weights of most users are nearly right then."""

_PROBE = 1e-3
"""Part of a user's CPU time that is added to measure the slope of a
metric."""


@dataclasses.dataclass(frozen=True, eq=False)
class FreeLevels:
    """Search for levels of nodes without exempt VMs.

    It begins again with each change, so that the division does not depend on
    the past of an agent.

    :ivar nodes: (m,) whether the level of the node is searched.
    :ivar turns: search for the levels so far.
    :ivar at: state of the search of the present turn; ``None`` to begin.
    """

    nodes: resources.Mask
    turns: exempt_levels.LevelSearch
    at: maxmin.SearchState | None


@dataclasses.dataclass(frozen=True, eq=False)
class ForesightSearch:
    """State of a search for the fair division.

    :ivar knowledge: newest wants and CPUs of all nodes.
    :ivar end: best division that the search has found for them.
    :ivar at: state of the search in :mod:`.maxmin`; ``None`` if no node is
        short.
    :ivar is_over: whether the search is finished.
    :ivar turns: state of the search for levels of nodes with exempt VMs;
        ``None`` if there are none.
    :ivar free: search for levels of other nodes, after that of the division;
        ``None`` if they can give no user more.
    """

    knowledge: foresight_model.CpuKnowledge
    end: foresight_model.CpuTarget
    at: maxmin.SearchState | None
    is_over: bool
    turns: exempt_levels.LevelSearch | None = None
    free: FreeLevels | None = None

    @property
    def is_useful(self) -> bool:
        """Whether the division is sharp enough for the policy to use it."""
        return self.end.sharpness <= SHARP


RunSteps = Callable[
    [foresight_model.CpuKnowledge, ForesightSearch | None, int],
    tuple[ForesightSearch, float],
]
"""Continues a search with the newest knowledge for a number of steps at most.
It returns the search and the CPU time that it used, seconds."""


@dataclasses.dataclass(frozen=True, eq=False)
class AgentSearch:
    """Search of an agent for the fair division, over many rounds.

    :ivar work: search in progress; ``None`` before the first round, and after
        a step that took too long.
    :ivar last: search whose division the node uses. It is the newest useful
        one while the same users are on the same nodes, otherwise ``work``.
    """

    work: ForesightSearch | None = None
    last: ForesightSearch | None = None

    def continue_for_round(
        self,
        knowledge: foresight_model.CpuKnowledge,
        run_steps: RunSteps,
        longest_s: float,
    ) -> 'AgentSearch':
        """Run the search for one round: one step, and more if time permits.

        The search continues from its present state after every change of
        wants, users or nodes. A finished search stays as it is while wants
        change by next to nothing.

        :param knowledge: newest wants and CPUs of all nodes.
        :param run_steps: runs steps of the search.
        :param longest_s: CPU time that a step may take; after a longer one
            there is no division, and feedback decides.
        """
        work, last = self.work, self.last
        if last is not None and not last.knowledge.has_cells_of(knowledge):
            last = None
        if work is not None and work.knowledge.is_like(knowledge):
            if work.is_over and last is not None:
                return self
            knowledge = work.knowledge
        found, step_s = run_steps(knowledge, work, 1)
        if step_s > longest_s:
            return AgentSearch()
        more = min(int(PER_ROUND_S / max(step_s, 1e-9)), STEPS) - 1
        if not found.is_over and more > 0:
            found, _ = run_steps(knowledge, found, more)
        # What is not finished is better than what was fair before.
        if last is None or found.is_useful:
            last = found
        return AgentSearch(found, last)


def search_division(
    knowledge: foresight_model.CpuKnowledge,
    ratio: float,
    before: ForesightSearch | None = None,
    steps: int = STEPS,
) -> ForesightSearch:
    """Search for the max-min fair division that bounded weights can give.

    With a metric that is no share it is the division in which users who
    compete are equally heavy. Several calls can share one search.

    :param ratio: largest weight of a node divided by the smallest, >= 1.
    :param before: search of the call before; ``None`` to begin. Users, nodes
        and wants may have changed since that call.
    :param steps: Newton steps at most, >= 1.
    """
    supply, short = _usable_supply(knowledge)
    heaviness = _Heaviness(knowledge)
    demand = knowledge.demand
    rows = maxmin.DemandRows(
        node=knowledge.node[demand.cell],
        owner=heaviness.owner[demand.cell],
        user=heaviness.user,
        wanted=demand.wanted,
        size=demand.vcpus,
        supply=np.where(short, supply, np.inf),
    )
    begin = None if before is None else _continued_state(before, knowledge)
    mixed = exempt_levels.MixedRows.of(
        rows, demand.cell, short, demand.exempt, ratio
    )
    if mixed is not None:
        turns = _continued_turns(before, knowledge, mixed)
        return _search_by_turns(
            knowledge, mixed, heaviness, turns, begin, steps
        )
    if before is None or before.knowledge is not knowledge or not before.free:
        found = maxmin.divide(rows, heaviness, ratio, begin, steps)
        steps -= exempt_levels.new_steps(begin, found.at)
        free = _levels_to_free(rows, heaviness, found, ratio)
        end = _target(knowledge, found, short)
        is_over = found.is_over and free is None
        before = ForesightSearch(knowledge, end, found.at, is_over, free=free)
    if steps < 1:
        return before
    return _search_free_levels(before, rows, heaviness, ratio, steps)


def _levels_to_free(
    rows: maxmin.DemandRows,
    heaviness: '_Heaviness',
    found: maxmin.MaxMinDivision,
    ratio: float,
) -> FreeLevels | None:
    """Return the search for levels that follows a division, if any."""
    if found.at is None or not found.is_over:
        return None
    nodes = exempt_levels.nodes_to_free(rows, heaviness, found, ratio)
    if not nodes.any():
        return None
    # A state that depends on the past would lead agents to other levels.
    return FreeLevels(nodes, exempt_levels.LevelSearch(), None)


def _search_free_levels(
    before: ForesightSearch,
    rows: maxmin.DemandRows,
    heaviness: '_Heaviness',
    ratio: float,
    steps: int,
) -> ForesightSearch:
    """Search for levels of nodes without exempt VMs, if they give more.

    :param before: the search of the division, and levels so far.
    """
    free, demand = before.free, before.knowledge.demand
    short = before.end.short
    if free is None:
        return before
    mixed = exempt_levels.MixedRows.of(
        rows, demand.cell, short, demand.exempt, ratio, free.nodes
    )
    if mixed is None:
        return before
    found = _search_by_turns(
        before.knowledge, mixed, heaviness, free.turns, free.at, steps
    )
    turns = found.turns or free.turns
    return dataclasses.replace(
        found,
        end=before.end if turns.best is None else found.end,
        at=before.at,
        turns=None,
        free=FreeLevels(free.nodes, turns, found.at),
    )


def _continued_turns(
    before: ForesightSearch | None,
    knowledge: foresight_model.CpuKnowledge,
    rows: exempt_levels.MixedRows,
) -> exempt_levels.LevelSearch:
    """Return the search for levels that continues with other knowledge."""
    if before is None or before.turns is None:
        return exempt_levels.LevelSearch()
    if before.knowledge is knowledge:
        return before.turns
    nodes = _earlier_indices(
        before.knowledge.node_names(), knowledge.node_names()
    )
    return before.turns.with_other_rows(rows, nodes)


def _search_by_turns(
    knowledge: foresight_model.CpuKnowledge,
    rows: exempt_levels.MixedRows,
    heaviness: '_Heaviness',
    turns: exempt_levels.LevelSearch,
    at: maxmin.SearchState | None,
    steps: int,
) -> ForesightSearch:
    """Run :func:`search_division` if some VMs on short nodes have weight 1.

    :param turns: search for levels so far.
    :param at: state of the search of the present turn.
    """
    left = steps
    while True:
        turn = turns.finished_turns
        turns, tried = turns.continued(rows, heaviness, at, left)
        left -= exempt_levels.new_steps(at, tried.at)
        at = tried.at
        is_over = turns.is_over or at is None
        if at is not None and not is_over and turns.finished_turns > turn:
            at = turns.begin_of_turn(at)
        if left < 1 or is_over:
            end = _target(knowledge, turns.best or tried, rows.short, rows)
            return ForesightSearch(knowledge, end, at, is_over, turns)


def _target(
    knowledge: foresight_model.CpuKnowledge,
    found: maxmin.MaxMinDivision,
    short: resources.Mask,
    mixed: exempt_levels.MixedRows | None = None,
) -> foresight_model.CpuTarget:
    """Return the target of cells, from a division of the demand's rows.

    :param mixed: rows, if some have weight 1.
    """
    due = np.bincount(knowledge.demand.cell, found.got, len(knowledge.node))
    log = _centred_weights(knowledge, found.log)
    if mixed is not None:
        # Beside weight 1 a common factor of weights has an effect.
        own = mixed.steered_weights(found.log, len(log))
        log = np.where(mixed.mixed[knowledge.node], own, log)
    return foresight_model.CpuTarget(
        log,
        due.astype(np.float64),
        short,
        found.sharpness,
    )


def _continued_state(
    before: ForesightSearch, knowledge: foresight_model.CpuKnowledge
) -> maxmin.SearchState | None:
    """Return the state from which a search continues with other knowledge.

    New users begin with the median weight. ``None`` means that the search
    must begin again.
    """
    if before.knowledge is knowledge or before.at is None:
        return before.at
    if before.at.best is not None and before.end.sharpness > LOST:
        return None
    at = maxmin.with_other_rows(before.at)
    is_short = before.turns is not None and before.turns.is_short_turn
    if at.best is not None and not before.is_useful and not is_short:
        at = maxmin.at_earlier_stage(at, _RESTART_STAGE - 2)
    if before.knowledge.has_cells_of(knowledge):
        return at
    old = before.knowledge
    if (old.weigh_users is None) is not (knowledge.weigh_users is None):
        return None
    nodes = _earlier_indices(old.node_names(), knowledge.node_names())
    users = _earlier_indices(old.user_names(), knowledge.user_names())
    cells = _earlier_cells(old, knowledge, nodes, users)
    rows = cells
    if knowledge.weigh_users is not None:
        rows = _earlier_users(old, knowledge, users)
    # A new user can be far from where they belong, and steps of the last
    # stages do not lead far.
    is_near = bool((rows >= 0).all()) and _are_few_changes(old, cells)

    def moved(cold: usage_model.Scalars) -> usage_model.Scalars:
        return np.where(rows < 0, np.median(cold), cold[rows])

    return dataclasses.replace(
        at,
        cold=moved(at.cold),
        level=None if at.level is None else at.level[nodes],
        stage=at.stage if is_near else min(at.stage, _RESTART_STAGE),
        best=None if at.best is None else moved(at.best),
    )


def _earlier_indices(
    old: Sequence[foresight_model.Name], new: Sequence[foresight_model.Name]
) -> usage_model.Indices:
    """Return the earlier index of each name; -1 for a new one."""
    if old == new:
        return np.arange(len(new))
    known = {name: place for place, name in enumerate(old)}
    return np.array([known.get(name, -1) for name in new], dtype=np.intp)


def _earlier_users(
    old: foresight_model.CpuKnowledge,
    new: foresight_model.CpuKnowledge,
    users: usage_model.Indices,
) -> usage_model.Indices:
    """Return the earlier index of each user that has cells; -1 for a new one.

    :param users: indices by :func:`_earlier_indices`.
    """
    before, _ = grouping.number_present_groups(old.user)
    now, _ = grouping.number_present_groups(new.user)
    return _indices_in(before, users[now])


def _earlier_cells(
    old: foresight_model.CpuKnowledge,
    new: foresight_model.CpuKnowledge,
    nodes: usage_model.Indices,
    users: usage_model.Indices,
) -> usage_model.Indices:
    """Return the earlier index of each cell; -1 for a new one.

    :param nodes: indices by :func:`_earlier_indices`; so are ``users``.
    """
    width = len(old.user_names())
    node, user = nodes[new.node], users[new.user]
    wanted = np.where((node < 0) | (user < 0), -1, node * width + user)
    return _indices_in(old.node * width + old.user, wanted)


def _indices_in(
    before: usage_model.Indices, wanted: usage_model.Indices
) -> usage_model.Indices:
    """Return the index of each value in an ascending array; -1 if absent."""
    place = np.searchsorted(before, wanted).clip(max=len(before) - 1)
    return np.where(before[place] == wanted, place, -1)


def _are_few_changes(
    old: foresight_model.CpuKnowledge, cells: usage_model.Indices
) -> bool:
    """Whether at most :data:`FEW` of the cells appeared or disappeared.

    :param cells: earlier indices by :func:`_earlier_cells`.
    """
    kept = int(np.count_nonzero(cells >= 0))
    return max(len(cells), len(old.node)) - kept <= FEW * kept


def _usable_supply(
    knowledge: foresight_model.CpuKnowledge,
) -> tuple[usage_model.Scalars, resources.Mask]:
    """Return the CPU time that users of each node can have, and short nodes.

    :returns: (m,) CPU time, and (m,) whether users want more.
    """
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
    """Heaviness of owners for any division of the CPU time.

    Owners are users if the metric depends only on users' sums, otherwise
    cells.

    :ivar owner: (n,) index of each cell's owner.
    :ivar user: (k,) index of each owner's user.
    """

    def __init__(self, knowledge: foresight_model.CpuKnowledge) -> None:
        names, self._user = grouping.number_present_groups(knowledge.user)
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
        """Return the heaviness of owners, and its slope by their CPU time.

        :param got: (p,) CPU time of the rows of the demand.
        :returns: (k,) and (k,) >= 0.
        """
        cpu = np.bincount(self._row, got, len(self.user)).astype(np.float64)
        heavy = self._heaviness_at(cpu)
        of_user = np.bincount(self.user, cpu)[self.user]
        more = self._heaviness_at(cpu + _PROBE * cpu)
        step = np.where(of_user > 0, _PROBE * of_user, 1.0)
        return heavy, ((more - heavy) / step).clip(0.0)

    def _heaviness_at(self, cpu: usage_model.Scalars) -> usage_model.Scalars:
        used = self._used.copy()
        used[:, CPU_TIME] = cpu
        return self._weigh(used)


def _centred_weights(
    knowledge: foresight_model.CpuKnowledge, log: usage_model.Scalars
) -> usage_model.Scalars:
    """Return one weight for each cell; the middle of each node is neutral.

    :param log: (p,) logarithms of the weights of the rows of the demand.
    :returns: (n,) logarithms.
    """
    nodes = len(knowledge.supply)
    cell = knowledge.demand.cell
    first = np.searchsorted(cell, np.arange(len(knowledge.node)))
    high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(high, knowledge.node[cell], log)
    np.minimum.at(low, knowledge.node[cell], log)
    known = np.isfinite(high)
    middle = np.where(known, high, 0.0) + np.where(known, low, 0.0)
    return np.asarray(log[first] - middle[knowledge.node] / 2)
