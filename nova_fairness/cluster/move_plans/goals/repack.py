# SPDX-License-Identifier: Apache-2.0

"""Goal ``repack``: all servers are packed from scratch, on fewer hosts."""

from collections.abc import Iterator
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module

_USUAL = rules_module.USUAL


@dataclasses.dataclass(frozen=True)
class RepackGoal(goal.PlanGoal):
    """Plans to pack all servers from scratch, at intervals.

    :ivar least_emptied: smallest number of hosts that a plan must empty.
    :ivar every_s: interval between two plans of this goal, seconds.
    :ivar rules: bounds of the search for moves.
    """

    name = model.Goal.REPACK
    conflicts = frozenset(
        {model.Goal.BALANCE, model.Goal.HELP, model.Goal.MARKET}
    )
    closes = True

    least_emptied: int = 1
    every_s: float = 7 * 86400.0
    rules: rules_module.ConsolidationRules = _USUAL

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(
            options.least_emptied,
            options.repack_every,
            goal.consolidation_rules(options),
        )

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves that empty at least the required number of hosts, if
        the interval has passed.
        """
        if not self._is_due(seen):
            return
        found = repack.repack(seen.snapshot, self.rules)
        draft = goal.build_draft(self.name, '', seen.snapshot, found)
        if draft.promised.emptied >= self.least_emptied:
            yield draft

    def _is_due(self, seen: goal.GoalInput) -> bool:
        """Whether the interval since the last plan of this goal has passed."""
        return not any(
            each.goal is self.name
            and each.state is not model.PlanState.EXPIRED
            for each in seen.plans(seen.at - self.every_s)
        )
