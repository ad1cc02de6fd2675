# SPDX-License-Identifier: Apache-2.0

"""Planners for trials, by the options of the service."""

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.assembly import planner
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import orders


def configured(**options):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([])
    for name, value in options.items():
        conf.set_override(name, value, 'fairness_cluster')
    return conf


def order_of(made):
    """The order of a planner without preemption."""
    assert made.plan.keywords['order'] is made.order
    return made.order


def test_a_trial_plans_by_the_configured_order_and_its_numbers():
    conf = configured(
        order='multifactor', order_parameters={'age': 7.0}, room_per_hour=0
    )
    made = order_of(planner.build_trial_planner(conf, quarantine.Quarantine()))
    assert isinstance(made, orders.Multifactor)
    expected = orders.Multifactor(age=7.0)
    assert vars(made) == vars(expected)
    assert vars(made) != vars(orders.Multifactor())


def test_a_trial_plans_by_the_order_that_replaces_one_in_quarantine():
    set_aside = quarantine.Quarantine()
    conf = configured(order='multifactor', room_per_hour=0)
    kind = quarantine.InputKind.PLUGIN
    set_aside.put(kind, 'order multifactor', ValueError())
    made = order_of(planner.build_trial_planner(conf, set_aside))
    assert isinstance(made, orders.FairTree)
    set_aside.put(kind, 'order fair_tree', ValueError())
    made = order_of(planner.build_trial_planner(conf, set_aside))
    assert isinstance(made, order_module.OldestFirst)


def test_the_order_in_force_is_named_also_in_quarantine():
    set_aside = quarantine.Quarantine()
    conf = configured(order='multifactor')
    assert planner.order_in_force(conf, set_aside) == (
        'multifactor',
        orders.Multifactor.description,
    )
    kind = quarantine.InputKind.PLUGIN
    set_aside.put(kind, 'order multifactor', ValueError())
    assert planner.order_in_force(conf, set_aside)[0] == 'fair_tree'


def test_a_trial_of_another_order_takes_no_number_of_the_configured_one():
    conf = configured(
        order='multifactor', order_parameters={'age': 7.0}, room_per_hour=0
    )
    set_aside = quarantine.Quarantine()
    made = order_of(
        planner.build_trial_planner(conf, set_aside, 'multifactor', {})
    )
    assert vars(made) == vars(orders.Multifactor())
    with pytest.raises(exception.UnknownPlugin, match='fair_tree'):
        planner.build_trial_planner(conf, set_aside, 'none')


def test_a_trial_has_preemption_where_the_service_has_it():
    conf = configured(room_per_hour=10)
    set_aside = quarantine.Quarantine()
    made = planner.build_trial_planner(conf, set_aside)
    assert type(made.plan) is type(planner.build_planner(conf, set_aside))
    kind = quarantine.InputKind.PLUGIN
    wanted = conf.fairness_cluster.room_victims
    set_aside.put(kind, f'victims {wanted}', ValueError())
    assert planner.build_trial_planner(conf, set_aside).plan._victims
