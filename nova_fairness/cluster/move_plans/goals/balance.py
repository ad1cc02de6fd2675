# SPDX-License-Identifier: Apache-2.0

"""Goal ``balance``: the use of all hosts is nearly equal."""

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
    """Plans moves that make the use of hosts more equal.

    :ivar spread: a host is unbalanced if its use exceeds the average by more
        than this fraction of the average.
    :ivar margin: smallest reduction of the spread that justifies a plan.
    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.BALANCE

    spread: float = 0.2
    margin: float = 0.05
    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(
            options.spread, options.margin, goal.consolidation_rules(options)
        )

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves that reduce the spread by at least the margin."""
        tolerance = balance.BalanceTolerance(self.spread)
        found = balance.balance(seen.snapshot, self.rules, tolerance)
        draft = goal.build_draft(self.name, '', seen.snapshot, found)
        won = draft.promised.spread_before - draft.promised.spread_after
        if won >= self.margin:
            yield draft
