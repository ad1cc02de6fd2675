# SPDX-License-Identifier: Apache-2.0

"""Goal ``consolidate``: servers run on fewer hosts."""

from collections.abc import Iterator
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import rules as rules_module

_USUAL = rules_module.USUAL


@dataclasses.dataclass(frozen=True)
class ConsolidationGoal(goal.PlanGoal):
    """Plans moves that empty hosts.

    :ivar least_emptied: smallest number of hosts that a plan must empty.
    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.CONSOLIDATE
    conflicts = frozenset(
        {model.Goal.BALANCE, model.Goal.HELP, model.Goal.MARKET}
    )
    closes = True

    least_emptied: int = 1
    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(options.least_emptied, goal.consolidation_rules(options))

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves that empty at least the required number of hosts."""
        found = planner.consolidate(seen.snapshot, self.rules)
        draft = goal.build_draft(self.name, '', seen.snapshot, found)
        if draft.promised.emptied >= self.least_emptied:
            yield draft

    @classmethod
    def is_in_vain(cls, plan: model.MigrationPlan, move: model.Move) -> bool:
        """Whether a move is useless, because another server stays on the
        host that it helps to empty.
        """
        return move.source in plan.empties and any(
            each.source == move.source and goal.ended_without_move(each)
            for each in plan.moves
        )
