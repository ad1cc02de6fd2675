# SPDX-License-Identifier: Apache-2.0

"""Registry of all goals of migration plans, by name."""

from collections.abc import Mapping
import types

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.cluster.move_plans.goals import balance
from nova_fairness.cluster.move_plans.goals import consolidate
from nova_fairness.cluster.move_plans.goals import empty
from nova_fairness.cluster.move_plans.goals import goal
from nova_fairness.cluster.move_plans.goals import help as help_module
from nova_fairness.cluster.move_plans.goals import market
from nova_fairness.cluster.move_plans.goals import repack
from nova_fairness.cluster.move_plans.goals import rescue
from nova_fairness.model import plans as model

GOALS: Mapping[model.Goal, type[goal.PlanGoal]] = types.MappingProxyType(
    {
        each.name: each
        for each in (
            consolidate.ConsolidationGoal,
            repack.RepackGoal,
            balance.BalanceGoal,
            rescue.RescueGoal,
            help_module.HelpGoal,
            market.MarketGoal,
            empty.EmptyHostGoal,
        )
    }
)

CLOSING = frozenset(name for name, each in GOALS.items() if each.closes)
"""Goals whose plans close the hosts that they empty."""

HOLDING = frozenset(name for name, each in GOALS.items() if each.holds_host)
"""Goals whose plans hold a host until it is empty."""


def configured_goals(
    options: cfg.ConfigOpts.GroupAttr,
) -> tuple[goal.PlanGoal, ...]:
    """Build the goals that ``[fairness_plans]`` lists, in their order.

    :raises ConfigurationError: if two goals contradict each other.
    """
    goals = [GOALS[model.Goal(each)] for each in dict.fromkeys(options.goals)]
    contrary = [
        each.name.value
        for each in goals
        if any(
            each.name in other.conflicts or other.name in each.conflicts
            for other in goals
        )
    ]
    if contrary:
        raise exception.ConfigurationError(
            f'[fairness_plans] goals: {" beside ".join(contrary)} would move'
            ' the same servers to and fro; choose one of them'
        )
    return tuple(each.configured(options) for each in goals)
