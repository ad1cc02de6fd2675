# SPDX-License-Identifier: Apache-2.0

"""Contract of the goals of migration plans, and code that several goals
use.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import ClassVar
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import utilisation
from nova_fairness.planners.consolidation import waves

_HARMLESS = frozenset({model.PlanCause.SERVER_GONE, model.PlanCause.ELSEWHERE})
"""Causes of skipped moves whose server is no longer on the old host."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """Moves that are worth a plan, before the plan is stored.

    :ivar goal: goal of the moves.
    :ivar subject: UUID of the request, or name of the host, for which the
        moves are made; '' if there is none.
    :ivar moves: moves in the order in which they are executed.
    :ivar empties: names of hosts that are empty after the moves.
    :ivar promised: expected outcome.
    :ivar text: expected outcome as a text, if the numbers do not describe it.
    :ivar stays: servers that stay on the host that the plan empties.
    """

    goal: model.Goal
    subject: str
    moves: tuple[model.Move, ...]
    empties: tuple[str, ...]
    promised: model.PlanOutcome
    text: str = ''
    stays: tuple[model.Stay, ...] = ()


@dataclasses.dataclass(frozen=True)
class GoalInput:
    """State of the cloud, and further data that goals use.

    :ivar snapshot: state of the cloud, with the demands of servers that may be
        moved.
    :ivar waiting: requests that do not start now, by UUID, in the order of the
        queue.
    :ivar at: seconds of the epoch.
    :ivar servers: servers as Nova lists them, by UUID.
    :ivar moved_at: time at which the last moved server arrived on its new
        host, seconds of the epoch.
    :ivar lacking: CPU that servers want and get; ``None`` if no agent is
        queried.
    :ivar rates: returns the spending rates of servers, by UUID.
    :ivar plans: returns the plans that are open, or changed since a time in
        seconds of the epoch.
    """

    snapshot: cluster.ClusterSnapshot
    waiting: Mapping[str, cluster.Waiting]
    at: float
    servers: Mapping[str, nova.Server]
    moved_at: float
    lacking: agent_reports.ServerShortfall | None
    rates: Callable[[], Mapping[str, float]]
    plans: Callable[[float], Iterable[model.MigrationPlan]]


class PlanGoal(abc.ABC):
    """Goal of migration plans, with the limits that operators configured.

    A plan continues and is measured even if its goal is no longer configured.
    Therefore the methods that check plans are class methods, which need no
    limits.

    :cvar name: token of the goal.
    :cvar conflicts: goals that would move the same servers back; it is enough
        if one of two goals lists the other.
    :cvar asks_agents: whether the goal needs the CPU that servers want, from
        the agents.
    :cvar closes: whether nothing starts on hosts that its plans empty, from
        the begin of a plan until its outcome is measured.
    :cvar holds_host: whether the subject of its plans is a host that nothing
        else uses until it is empty, and that is then disabled.
    :cvar is_for_request: whether the subject of its plans is a request.
    """

    name: ClassVar[model.Goal]
    conflicts: ClassVar[frozenset[model.Goal]] = frozenset()
    asks_agents: ClassVar[bool] = False
    closes: ClassVar[bool] = False
    holds_host: ClassVar[bool] = False
    is_for_request: ClassVar[bool] = False

    @classmethod
    @abc.abstractmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""

    @abc.abstractmethod
    def drafts(self, seen: GoalInput) -> Iterable[Draft]:
        """Return moves that are worth a plan, the most important draft
        first.
        """

    @classmethod
    def is_of_use(
        cls,
        plan: model.MigrationPlan,
        waiting: Mapping[str, cluster.Waiting],
    ) -> bool:
        """Whether a proposed plan is still useful.

        :param waiting: requests that do not start now, by UUID.
        """
        return True

    @classmethod
    def is_in_vain(cls, plan: model.MigrationPlan, move: model.Move) -> bool:
        """Whether a move that has not started is no longer useful."""
        return False

    @classmethod
    def left(
        cls, plan: model.MigrationPlan, servers: Iterable[nova.Server]
    ) -> list[str]:
        """Return the names of servers on the host of a plan that no move of
        the plan moves away.

        :param servers: all servers of the cloud.
        """
        return []

    @classmethod
    def kept(cls, plan: model.MigrationPlan) -> set[str]:
        """Return the UUIDs of servers that stay on the host of a plan
        because their moves failed.
        """
        return set()

    @classmethod
    def served(
        cls,
        plan: model.MigrationPlan,
        requests: Iterable[records.RequestRecord],
    ) -> int:
        """Return the number of requests that started because of an ended
        plan.
        """
        return 0


def ended_without_move(move: model.Move) -> bool:
    """Whether a move has ended and its server is still on the old host."""
    state = model.MoveState
    return move.state is state.FAILED or (
        move.state is state.SKIPPED and move.cause not in _HARMLESS
    )


def all_drafts(goals: Iterable[PlanGoal], seen: GoalInput) -> Iterator[Draft]:
    """Yield the drafts that contain moves, those of the first goal first."""
    for each in goals:
        yield from (found for found in each.drafts(seen) if found.moves)


def build_draft(
    goal: model.Goal,
    subject: str,
    snapshot: cluster.ClusterSnapshot,
    plan: rules_module.ConsolidationPlan,
) -> Draft:
    """Build a draft from the moves of a planner, with their expected outcome.

    :param snapshot: state of the cloud before the moves.
    """
    before = utilisation.utilisation_figures(snapshot)
    after = utilisation.utilisation_figures(
        utilisation.snapshot_after_moves(snapshot, plan.moves)
    )
    empties = tuple(sorted(before.busy - after.busy))
    promised = model.PlanOutcome(
        hosts_before=len(before.busy),
        hosts_after=len(after.busy),
        spread_before=before.spread,
        spread_after=after.spread,
        emptied=len(empties),
        moves=len(plan.moves),
        memory_mb=plan.cost_mb,
    )
    return Draft(goal, subject, plan.moves, empties, promised)


def consolidation_rules(
    options: cfg.ConfigOpts.GroupAttr,
) -> rules_module.ConsolidationRules:
    """Return the limits of the search for moves, from ``[fairness_plans]``."""
    return rules_module.ConsolidationRules(
        depth=displacement.Depth(tight=options.packed_anew),
        concurrency=simultaneous_move_limits(options),
        dearest_mb=options.dearest or None,
        spare=options.spare,
    )


def simultaneous_move_limits(
    options: cfg.ConfigOpts.GroupAttr,
) -> waves.MoveConcurrency:
    """Return the largest number of moves of a plan at the same time, in
    total and per host.
    """
    return waves.MoveConcurrency(options.at_once, options.at_once_per_host)
