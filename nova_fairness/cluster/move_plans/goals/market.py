# SPDX-License-Identifier: Apache-2.0

"""Goal ``market``: a spending rate buys the same amount on every host."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Self

from oslo_config import cfg

from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.cluster.usage import prices
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.market import planner

_MEMORY = 'MEMORY_MB'


@dataclasses.dataclass(frozen=True)
class MarketGoal(goal.PlanGoal):
    """Plans moves of servers to hosts where their spending rates buy more.

    :ivar margin: smallest reduction of the mean price that justifies a plan,
        as a fraction.
    """

    name = model.Goal.MARKET
    conflicts = frozenset({model.Goal.BALANCE, model.Goal.HELP})

    margin: float = 0.05

    @classmethod
    def configured(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """Build the goal from the options of ``[fairness_plans]``."""
        return cls(options.margin)

    def drafts(self, seen: goal.GoalInput) -> Iterator[goal.Draft]:
        """Yield moves that reduce the mean price by at least the margin."""
        rates = seen.rates()
        if not rates or prices.SOLD not in seen.snapshot.classes:
            return
        found = planner.plan(
            _market_state(seen.snapshot, rates),
            seen.at,
            planner.MarketRules(self.margin),
        )
        plan = rules_module.ConsolidationPlan(found.moves, (0, 0))
        draft = goal.build_draft(self.name, '', seen.snapshot, plan)
        before, after = found.level
        text = (
            f'the mean price at which owners buy falls from {before:.2f} to'
            f' {after:.2f}; it is 1 where all hosts are as dear for their size'
        )
        yield dataclasses.replace(draft, text=text)


def _market_state(
    snapshot: cluster.ClusterSnapshot, rates: Mapping[str, float]
) -> market.MarketState:
    """Return the rates and demands of servers. Members of server groups
    with a policy have no demand, so that they stay.
    """
    bids = {
        each.uuid: market.Bid(
            rates[each.uuid],
            demand=None if each.bound else each.demand,
            cost=max(dict(each.amounts).get(_MEMORY, 0) * each.sends, 1.0),
        )
        for each in snapshot.running
        if each.uuid in rates
    }
    lowest = min(rates.values())
    return market.MarketState(snapshot, bids, (prices.SOLD,), lowest=lowest)
