# SPDX-License-Identifier: Apache-2.0

"""The state of the whole service in one answer."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster.api import overview
from nova_fairness.cluster.api import requests
from nova_fairness.model import plans as plan_model
from nova_fairness.runtime import outages
from tests.unit.cluster import test_service
from tests.unit.cluster.api import test_standing

world = test_service.world


@pytest.fixture(autouse=True)
def _servers_answer(monkeypatch):
    """Other tests of this process lost some."""
    monkeypatch.setattr(outages, 'SERVERS', outages.OutageLog())


@pytest.fixture
def process(world):
    return world.process('ctl1:7')


@pytest.fixture
def ask(world, process):
    return requests.ClusterOperations(world.store, process)


def test_the_leader_and_waiting_requests_are_shown(world, process, ask):
    for n in range(3):
        world.post(f'r{n}', vcpu=99)
    world.post('other', vcpu=99, project='rich')
    process.cycle()
    told = ask.status()['status']
    assert (told['leader'], told['epoch']) == ('ctl1', 1)
    assert told['hosts_count'] == 1
    assert told['waiting_count'] == 4
    too_large = {
        'reason': 'too_large',
        'explanation': 'for a host that is large enough',
    }
    assert told['waiting'] == [
        {'project_id': project, 'count': count, **too_large}
        for project, count in (('the-project', 3), ('rich', 1))
    ]
    assert told['leads_since'] == '1970-01-01T00:16:40+00:00'
    assert told['warnings'] == told['advice'] == told['plans'] == []


def test_the_leader_is_shown_with_its_takeover(world, process, ask):
    process.cycle()
    for _ in range(4):
        world.go(20.0)
        process.cycle()
    told = ask.status()['status']
    assert told['epoch'] > 1
    assert told['leads_since'] == '1970-01-01T00:16:40+00:00'
    assert told['seen_at'] == '1970-01-01T00:18:00+00:00'


def test_use_is_shown_beside_shares_and_the_most_first(
    world, process, ask, monkeypatch
):
    for project, host in (('p-small', 'h1'), ('p-large', 'h2')):
        world.cloud.add_host(host, 8)
        vcpu = 2 if project == 'p-small' else 6
        server = world.post(f'of-{project}', vcpu=vcpu, project=project)
        process.cycle()
        need = {**test_service.NEED, 'VCPU': vcpu}
        world.cloud.build(server, host, need)
    for _ in range(3):
        world.go(3600.0)
        process.cycle()
    large, small = ask.status()['status']['shares']
    assert (large['account'], small['account']) == ('p-large', 'p-small')
    assert large['used_part'] == pytest.approx(3 * small['used_part'])
    assert large['fair_share'] < small['fair_share']
    assert large['normalised_share'] == pytest.approx(0.5)
    monkeypatch.setattr(overview, 'MOST_SHARES', 1)
    assert ask.status()['status']['shares'] == [large]


def test_findings_of_checks_are_warnings_with_advice(world, process):
    process.cycle()
    ask = requests.ClusterOperations(
        world.store, process, checks=lambda: ('Relay: no relay receives',)
    )
    told = ask.status()['status']
    assert told['warnings'] == ['Relay: no relay receives']
    assert '--controller upgrade check' in told['advice'][0]


def test_servers_that_are_away_and_late_cycles_are_warnings(
    process, ask, monkeypatch
):
    process.cycle()
    away = outages.OutageLog()
    away.lost('placement', 'ConnectFailure')
    monkeypatch.setattr(outages, 'SERVERS', away)
    process._log_cycle(True, 12.0, 10.0)
    late, lost = ask.status()['status']['warnings']
    assert late.startswith('cycles: late: this one took 12.0 s')
    assert lost == 'placement: connection lost 0 s ago'
    process._log_cycle(True, 2.0, 10.0)
    assert ask.status()['status']['warnings'] == [lost]


def test_lists_are_bounded(world, process, ask):
    for n in range(overview.MOST + 1):
        world.post(f'r{n}', vcpu=99, project=f'p{n}')
    process.cycle()
    assert len(ask.status()['status']['waiting']) == overview.MOST


def test_a_plan_that_waits_for_approval_is_advised(world, process, ask):
    process.cycle()
    rescue, proposed = plan_model.Goal.RESCUE, plan_model.PlanState.PROPOSED
    plan = test_standing.planned(rescue, proposed, 'r')
    done = dataclasses.replace(plan, state=plan_model.PlanState.DONE)
    world.store.plans = test_standing.FakePlans(plan, done)
    told = ask.status()['status']
    assert told['plans'] == [
        {'uuid': 'the-plan', 'goal': 'rescue', 'state': 'proposed'}
    ]
    assert told['advice'] == [
        'Approve or stop plan the-plan: openstack fairness plan show the-plan'
    ]


def test_each_entry_in_quarantine_is_a_warning(monkeypatch, process, ask):
    process.cycle()
    odd = {'physics': 'its windows are odd'}
    monkeypatch.setattr(type(process.accounts), 'set_aside', odd)
    fault = 'they differ by 90 s'
    monkeypatch.setattr(type(process.clocks), 'fault', fault)
    told = ask.status()['status']
    assert told['warnings'] == [
        'clocks: they differ by 90 s',
        'account physics: set aside: its windows are odd',
    ]
    assert len(told['advice']) == 2


def test_a_process_that_does_not_lead_tells_nothing(world, process, ask):
    process.cycle()
    other = requests.ClusterOperations(world.store, world.process('two'))
    with pytest.raises(exception.NotLeading):
        other.status()
