# SPDX-License-Identifier: Apache-2.0

"""Goal ``rescue``: moves make room for a request that fits on no host."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import rules as rules_module

_LOOKED_AT = 3
"""Number of requests for which moves are searched in one cycle, the first
in the queue.
"""

_R = request_model.State
_SERVED = frozenset({_R.SENDING, _R.STARTING, _R.ACTIVE})
_USUAL = rules_module.USUAL


@dataclasses.dataclass(frozen=True)
class RescueGoal(goal.PlanGoal):
    """Plans moves that make room for a request that waits only for room.

    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.RESCUE
    is_for_request = True

    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(goal.consolidation_rules(options))

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves for each of the first requests that wait only for
        room.
        """
        for request in _next_requests_without_room(seen):
            found = planner.rescue(seen.snapshot, request, self.rules)
            if found is not None and found.moves:
                draft = goal.build_draft(
                    self.name, request.uuid, seen.snapshot, found
                )
                promised = dataclasses.replace(draft.promised, served=1)
                yield dataclasses.replace(draft, promised=promised)

    @classmethod
    def is_of_use(
        cls,
        plan: model.MigrationPlan,
        waiting: Mapping[str, cluster.Waiting],
    ) -> bool:
        """Whether the request of a plan still waits."""
        return plan.subject in waiting

    @classmethod
    def served(
        cls,
        plan: model.MigrationPlan,
        requests: Iterable[records.RequestRecord],
    ) -> int:
        """Return 1 if the request of a plan starts or runs, otherwise 0."""
        return sum(
            each.request.uuid == plan.subject and each.request.state in _SERVED
            for each in requests
        )


def _next_requests_without_room(
    seen: goal.GoalInput,
) -> list[request_model.Request]:
    """Return the first requests in the queue that wait only for room.

    Preemptible requests are left out: no server is moved for them.
    """
    by_uuid = {each.uuid: each for each in seen.snapshot.requests}
    found = [
        by_uuid[uuid]
        for uuid, place in seen.waiting.items()
        if place.why.reason in reason.LACKS_ROOM
        and uuid in by_uuid
        and not by_uuid[uuid].is_preemptible
    ]
    return found[:_LOOKED_AT]
