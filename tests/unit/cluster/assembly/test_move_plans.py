# SPDX-License-Identifier: Apache-2.0

"""How the cluster service is told to move servers."""

import threading

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.cluster.assembly import move_plans
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.move_plans.goals import balance
from nova_fairness.cluster.move_plans.goals import empty
from nova_fairness.cluster.move_plans.goals import rescue
from nova_fairness.cluster.openstack import clients
from nova_fairness.conf import cluster as cluster_conf
from nova_fairness.planners.consolidation import rules
from nova_fairness.planners.consolidation import waves
from tests.fixtures import border
from tests.fixtures import fake_cloud

NODE = border.node('x')


class FakeStore:
    """Is only passed on, and has a host that batch and cloud share."""

    plans = None

    @property
    def nodes(self):
        return self

    def read_hosts(self):
        return {'x': NODE}, {}


def configured(monkeypatch, batch='', **options):
    conf = cfg.ConfigOpts()
    cluster_conf.register_opts(conf)
    conf([], project='x', default_config_files=[])
    for name, value in options.items():
        conf.set_override(name, value, 'fairness_plans')
    conf.set_override('batch', batch, 'fairness_partition')
    conf.set_override('hosts_interval', 2.0, 'fairness_cluster')
    apis = fake_cloud.FakeCloud().apis
    monkeypatch.setattr(clients, 'connect', lambda *_: apis)
    return move_plans.build_plan_controller(
        conf, FakeStore(), None, threading.Event()
    )


def test_no_server_moves_unless_a_mode_is_chosen(monkeypatch):
    assert configured(monkeypatch) is None


def test_hosts_are_shared_only_if_a_batch_system_is_configured(
    monkeypatch,
):
    both = configured(monkeypatch, mode='auto', batch='slurm')
    assert list(both._looking._shared()) == [NODE]
    # They are stored for longer than that.
    alone = configured(monkeypatch, mode='auto')
    assert list(alone._looking._shared()) == []


def test_choices_of_operators_reach_the_plans(monkeypatch):
    usual = configured(monkeypatch, mode='recommend')
    assert usual.name == 'plans'
    assert usual._rules.mode is plan_controller.Mode.RECOMMEND
    bounds = rules.ConsolidationRules(
        concurrency=waves.MoveConcurrency(4, 1), spare=1
    )
    assert usual._rules.goals == (rescue.RescueGoal(bounds),)
    assert usual._rules.emptying == empty.EmptyHostGoal(bounds)
    assert usual._moving._limits == plan_executor.ExecutionLimits()
    assert usual._resting._rules == host_power.HostPowerOptions()
    other = configured(
        monkeypatch,
        mode='auto',
        goals=['balance', 'rescue', 'balance'],
        hold=3.0,
        expiry=64.0,
        rest=5.0,
        least_emptied=6,
        spread=0.7,
        margin=0.8,
        dearest=9,
        at_once=10,
        at_once_per_host=11,
        spare=13,
        disable_empty=True,
        power_command=['/bin/power', '-q'],
    )
    bounds = rules.ConsolidationRules(
        concurrency=waves.MoveConcurrency(10, 11), dearest_mb=9, spare=13
    )
    assert other._rules == plan_controller.PlanOptions(
        plan_controller.Mode.AUTO,
        (balance.BalanceGoal(0.7, 0.8, bounds), rescue.RescueGoal(bounds)),
        empty.EmptyHostGoal(bounds),
        3.0,
        64.0,
        5.0,
        other._rules.history_s,
    )
    assert other._interval_s == 2.0
    assert other._moving._limits == plan_executor.ExecutionLimits(10, 11)
    assert other._resting._rules == host_power.HostPowerOptions(
        True, 3.0, 13, ('/bin/power', '-q')
    )


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'goals': ['consolidate', 'balance']}, 'to and fro'),
        ({'goals': ['help', 'consolidate']}, 'help beside consolidate'),
        ({'goals': ['repack', 'market']}, 'repack beside market would'),
        (
            {'goals': ['consolidate', 'repack', 'rescue', 'balance']},
            'goals: consolidate beside repack beside balance would',
        ),
        ({'goals': ['market', 'rescue', 'help']}, 'market beside help would'),
        ({'goals': ['help']}, 'goals = help needs transport_url'),
        ({'power_command': ['power']}, 'path of a program'),
    ],
)
def test_choices_that_contradict_each_other_are_refused(
    monkeypatch, options, said
):
    with pytest.raises(exception.ConfigurationError, match=said):
        configured(monkeypatch, mode='auto', **options)


def test_hosts_are_closing_from_either_source():
    closing = move_plans.ClosedHosts()
    assert closing() == frozenset()
    closing.add(lambda: {'h1'})
    closing.add(lambda: ['h1', 'h2'])
    assert closing() == {'h1', 'h2'}
