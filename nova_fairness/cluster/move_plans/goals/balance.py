# SPDX-License-Identifier: Apache-2.0

"""Goal ``balance``: no host is much fuller than the others."""

from collections.abc import Iterator
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import rules as rules_module

_USUAL = rules_module.USUAL


@dataclasses.dataclass(frozen=True)
class BalanceGoal(goal.PlanGoal):
    """Makes hosts more evenly full.

    :ivar spread: a host gives servers away if its use exceeds the average by
        more than this fraction of the average.
    :ivar margin: smallest improvement of the spread that is worth a plan.
    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.BALANCE

    spread: float = 0.2
    margin: float = 0.05
    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Make the goal with the bounds of ``[fairness_plans]``."""
        return cls(
            options.spread, options.margin, goal.consolidation_rules(options)
        )

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Moves that make hosts even enough."""
        tolerance = balance.BalanceTolerance(self.spread)
        found = balance.balance(seen.snapshot, self.rules, tolerance)
        draft = goal.draft(self.name, '', seen.snapshot, found)
        won = draft.promised.spread_before - draft.promised.spread_after
        if won >= self.margin:
            yield draft
