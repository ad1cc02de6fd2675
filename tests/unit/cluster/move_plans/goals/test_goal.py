# SPDX-License-Identifier: Apache-2.0

"""What every goal of migration plans has."""

import itertools

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.move_plans.goals import balance
from nova_fairness.cluster.move_plans.goals import consolidate
from nova_fairness.cluster.move_plans.goals import empty
from nova_fairness.cluster.move_plans.goals import help as help_module
from nova_fairness.cluster.move_plans.goals import market
from nova_fairness.cluster.move_plans.goals import repack
from nova_fairness.cluster.move_plans.goals import rescue
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import rules
from nova_fairness.planners.consolidation import waves
from nova_fairness.planners.tenants import planner as tenants_planner

AT_ONCE = waves.MoveConcurrency(10, 11)
BOUNDS = rules.ConsolidationRules(
    depth=displacement.Depth(tight=14),
    concurrency=AT_ONCE,
    dearest_mb=9,
    spare=13,
)


def configured(chosen):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([], project='x', default_config_files=[])
    for name, value in chosen.items():
        conf.set_override(name, value, 'fairness_plans')
    return conf.fairness_plans


def test_every_goal_is_in_the_module_of_its_name():
    assert set(registry.GOALS) == set(model.Goal)
    modules = {
        name: each.__module__.rpartition('.')[2]
        for name, each in registry.GOALS.items()
    }
    assert modules == {each: each.value for each in model.Goal}


@pytest.mark.parametrize(
    'made',
    [
        consolidate.ConsolidationGoal(6, BOUNDS),
        repack.RepackGoal(6, 16.0, BOUNDS),
        balance.BalanceGoal(0.7, 0.8, BOUNDS),
        rescue.RescueGoal(BOUNDS),
        help_module.HelpGoal(
            tenants_planner.TenantRules(
                margin=0.8, seen_s=17.0, concurrency=AT_ONCE
            )
        ),
        market.MarketGoal(0.8),
        empty.EmptyHostGoal(BOUNDS),
    ],
    ids=lambda each: each.name.value,
)
def test_a_goal_has_the_bounds_that_operators_chose(made):
    chosen = {
        'least_emptied': 6,
        'repack_every': 16.0,
        'spread': 0.7,
        'margin': 0.8,
        'seen_for': 17.0,
        'dearest': 9,
        'at_once': 10,
        'at_once_per_host': 11,
        'packed_anew': 14,
        'spare': 13,
    }
    options = configured(chosen)
    assert registry.GOALS[made.name].configured(options) == made


@pytest.mark.parametrize(
    ('name', 'closes', 'holds'),
    [
        ('consolidate', True, False),
        ('repack', True, False),
        ('balance', False, False),
        ('rescue', False, False),
        ('help', False, False),
        ('market', False, False),
        ('empty', True, True),
    ],
)
def test_only_some_goals_disable_hosts(name, closes, holds):
    assert (model.Goal(name) in registry.CLOSING) is closes
    assert (model.Goal(name) in registry.HOLDING) is holds


NAMES = ['consolidate', 'repack', 'balance', 'rescue', 'help', 'market']
APART = {
    frozenset({first, second})
    for some, others in (
        (('consolidate', 'repack'), ('balance', 'help', 'market')),
        (('market',), ('balance', 'help')),
    )
    for first in some
    for second in others
}


@pytest.mark.parametrize(
    'names',
    list(itertools.combinations(NAMES, 2)),
    ids='-'.join,
)
def test_goals_that_reverse_moves_of_each_other_are_refused(names):
    options = configured({'goals': list(names)})
    if frozenset(names) in APART:
        with pytest.raises(
            exception.ConfigurationError, match=' beside '.join(names)
        ):
            registry.configured_goals(options)
    else:
        found = [
            each.name.value for each in registry.configured_goals(options)
        ]
        assert found == list(names)


def test_goals_on_request_cannot_be_configured():
    with pytest.raises(ValueError, match='empty'):
        configured({'goals': ['empty']})
