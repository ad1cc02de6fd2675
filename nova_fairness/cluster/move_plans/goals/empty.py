# SPDX-License-Identifier: Apache-2.0

"""Goal ``empty``: a host that an operator selected becomes empty.

Operators can request such plans, regardless of the configured goals.
"""

from collections.abc import Iterable
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans import candidates
from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.model import request as request_model
from nova_fairness.planners.consolidation import empty
from nova_fairness.planners.consolidation import rules as rules_module

_USUAL = rules_module.USUAL


@dataclasses.dataclass(frozen=True)
class EmptyHostGoal(goal.PlanGoal):
    """Plans moves of all servers off a host, as far as possible.

    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.EMPTY
    closes = True
    holds_host = True

    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(goal.consolidation_rules(options))

    def drafts(self, seen: goal.GoalInput) -> tuple[goal.Draft, ...]:
        """Return no drafts: a host is emptied only when an operator
        requests it.
        """
        return ()

    def emptied(
        self,
        snapshot: cluster.ClusterSnapshot,
        known: candidates.ServerFacts,
        host: str,
    ) -> goal.Draft:
        """Return the moves off a host, and the servers that stay on it with
        their reasons.

        :param snapshot: state of the cloud.
        :param known: facts about its servers.
        :param host: name of a host in the snapshot.
        """
        seen = candidates.with_movable_demands(snapshot, known)
        found = empty.empty(seen, host, self.rules)
        moved = {each.server for each in found.moves if each.target != host}
        stays = tuple(
            _staying_server(each, snapshot, known)
            for each in sorted(seen.running, key=lambda each: each.uuid)
            if each.host == host and each.uuid not in moved
        )
        draft = goal.build_draft(self.name, host, seen, found)
        return dataclasses.replace(draft, stays=stays)

    @classmethod
    def left(
        cls, plan: model.MigrationPlan, servers: Iterable[nova.Server]
    ) -> list[str]:
        """Return the names of servers on the host of a plan that no move of
        the plan moves away.
        """
        moved = {each.server for each in plan.moves}
        return [
            each.name or each.uuid
            for each in servers
            if each.host == plan.subject and each.uuid not in moved
        ]

    @classmethod
    def kept(cls, plan: model.MigrationPlan) -> set[str]:
        """Return the UUIDs of servers whose moves off the host of a plan
        failed.
        """
        return {
            each.server
            for each in plan.moves
            if each.source == plan.subject and goal.ended_without_move(each)
        }


def _staying_server(
    running: cluster.Running,
    snapshot: cluster.ClusterSnapshot,
    known: candidates.ServerFacts,
) -> model.Stay:
    """Return a server that stays on its host, with the reason."""
    server = known.servers.get(running.uuid)
    cause, text = candidates.reason_to_stay(running, snapshot, known) or (
        model.PlanCause.NOWHERE,
        '',
    )
    if cause is model.PlanCause.NOWHERE and _is_bound_together(running):
        cause = model.PlanCause.TOGETHER
    return model.Stay(running.uuid, server.name if server else '', cause, text)


def _is_bound_together(running: cluster.Running) -> bool:
    together = request_model.Rule.TOGETHER
    return running.bound is not None and running.bound.rule is together
