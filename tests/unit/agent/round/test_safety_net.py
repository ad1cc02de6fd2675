# SPDX-License-Identifier: Apache-2.0

"""An agent whose policy does harm returns to neutral and says so."""

import dataclasses
import logging

import numpy as np
import pytest

from nova_fairness import plugins
from nova_fairness.agent.round import safety_net as agent_net
from nova_fairness.decide import safety_net
from nova_fairness.model import resources
from nova_fairness.observe import metrics
from tests.unit.agent import fake_host
from tests.unit.decide import inverted

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
NAMES = ('a-1', 'a-2', 'b-3')
SOON = safety_net.LASTING + 4
"""Rounds: one that only reads, one without wants, and until weights count."""


@pytest.fixture
def host(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, 'load_policy', lambda _: inverted.Inverted())
    vms = [fake_host.vm(name, name[0]) for name in NAMES]
    return fake_host.FakeHost(tmp_path, *vms)


def test_harmful_weights_become_neutral(host):
    done = host.rounds(4)
    assert done.decided.safety_net.harm > safety_net.MARGIN
    assert host.shares('a-1')[0] > host.shares('b-3')[0]
    done = host.rounds(SOON - 4)
    assert host.shares(*NAMES) == [1024] * 3
    assert done.decided.contended[CPU]
    assert done.decided.weights[:, CPU] == pytest.approx(1)


def test_the_log_names_harmed_users_once(host, caplog):
    host.rounds(SOON + 5)
    (said,) = [each for each in caplog.records if 'returned' in each.message]
    assert said.levelno == logging.WARNING
    assert said.message.startswith(
        'node fake: returned to neutral CPU weights'
    )
    assert 'user b has' in said.message


def test_a_neutral_control_reports_until_when_it_does_not_steer(host):
    done = host.rounds(SOON)
    control = done.controls[resources.ResourceControl.CPU]
    assert not control.works
    assert control.why.startswith('returned to neutral: users had less')
    assert 'rounds' in control.why


def test_the_policy_decides_again_after_the_neutral_time(host, caplog):
    caplog.set_level(logging.INFO)
    done = host.rounds(SOON)
    done = host.rounds(done.decided.safety_net.rest)
    assert done.decided.safety_net.rest == 0
    assert done.controls[resources.ResourceControl.CPU].works
    assert host.shares('a-1')[0] > host.shares('b-3')[0]
    assert 'decides CPU weights again' in caplog.text


def shown(collector):
    return {
        sample.name: sample.value
        for family in collector.collect()
        for sample in family.samples
    }


def test_returns_to_neutral_are_counted_as_a_metric(host):
    collector = metrics.RoundCollector()
    for _ in range(SOON):
        collector.add(host.rounds(1))
    found = shown(collector)
    assert found['nova_fairness_neutral_returns_total'] == 1
    assert found['nova_fairness_neutral_bool'] == 1
    collector.add(host.rounds(1))
    assert shown(collector)['nova_fairness_neutral_returns_total'] == 1


@pytest.mark.parametrize(
    'options',
    [{'safety_net': False}, {'enforce': False}, {'controls': frozenset()}],
    ids=['switched off', 'only observing', 'the CPU is not steered'],
)
def test_harm_is_judged_only_where_weights_are_enforced(host, options):
    host.change(**options)
    done = host.rounds(SOON)
    assert done.decided.safety_net is None
    assert done.decided.weights[0, CPU] > 1


def test_a_new_policy_starts_without_a_neutral_time(host):
    assert host.rounds(SOON).decided.safety_net.rest
    host.change(policy='another')
    assert not host.rounds(1).decided.safety_net.rest


def test_a_reset_ends_the_neutral_time(host):
    assert host.rounds(SOON).decided.safety_net.rest
    host.cycle.reset()
    assert not host.rounds(1).decided.safety_net.rest


def test_the_safety_net_does_not_interrupt_the_default_policy(tmp_path):
    vms = [fake_host.vm(name, name[0]) for name in NAMES]
    host = fake_host.FakeHost(tmp_path, *vms, policy='foresight')
    found = [host.rounds(1).decided for _ in range(40)]
    assert not any(each.safety_net.rest for each in found if each)


def test_the_safety_net_does_not_change_the_thesis_policy(tmp_path):
    vms = [fake_host.vm(name, name[0]) for name in NAMES]
    host = fake_host.FakeHost(
        tmp_path, *vms, policy='thesis', metric='GreedinessMetric'
    )
    assert host.rounds(4).decided.safety_net is None


@pytest.mark.parametrize('name', plugins.metric_names())
def test_an_unchanged_vm_is_as_heavy_with_every_metric(host, name):
    host.change(metric=name)
    measured = host.rounds(4).measured
    metric = plugins.load_metric(name)
    same = agent_net.heaviness_with_less_cpu(measured, metric, np.zeros(3))
    assert same == pytest.approx(measured.heaviness)


@pytest.mark.parametrize(
    'name', ['AssetFairnessMetric', 'DominantShareMetric', 'GreedinessMetric']
)
def test_a_user_with_less_use_is_lighter(host, name):
    host.change(metric=name)
    measured = host.rounds(4).measured
    metric = plugins.load_metric(name)
    less = agent_net.heaviness_with_less_cpu(
        measured, metric, np.array([2.0, 0, 0])
    )
    assert less[0] < measured.heaviness[0]


def test_heaviness_that_cannot_be_computed_again_is_kept(host):
    measured = dataclasses.replace(host.rounds(4).measured, basis=None)
    metric = plugins.load_metric('DominantShareMetric')
    found = agent_net.heaviness_with_less_cpu(measured, metric, np.ones(3))
    assert found is measured.heaviness
