# SPDX-License-Identifier: Apache-2.0

"""Servers are told that they are at risk, beside a fake cloud."""

import math

import pytest

from nova_fairness import exception
from nova_fairness.cluster import event_notifications
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.messages import parser
from nova_fairness.model import moments
from nova_fairness.model import reason
from nova_fairness.model import risk
from nova_fairness.planners.preemption import risk as next_module
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_idle_reclaim
from tests.unit.cluster.eviction import test_time_limits

world = test_service.world
go, metadata = test_time_limits.go, test_time_limits.metadata
TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(marks=True)
)


@pytest.fixture
def server(world):
    world.warnings = at_risk.AtRiskOptions(most=10, hold_s=900.0)
    return test_idle_reclaim.running(world)


@pytest.fixture
def told(world):
    """What listeners hear."""
    heard = []
    world.store.risks.add_listener(lambda each: heard.append(each.state))
    return heard


@pytest.fixture
def process(world, server, told):
    made = world.process('two', terms=TERMS)
    made.cycle()
    world.tick += 31
    return made


def name(world, *servers, times=3.0):
    world.following = lambda *_: [
        next_module.NextVictim(each, times, 2) for each in servers
    ]


def another(world, name):
    """Another process, which leads from now on."""
    made = world.process(name, terms=TERMS)
    made.cycle()
    world.tick += 31
    made.cycle()
    return made


def test_a_server_is_told_when_it_comes_next_and_when_it_does_not(
    world, server, process, told
):
    name(world, server)
    process.cycle()
    assert metadata(world, server) == {
        notice_channels.AT_RISK: moments.stamp(world.now)
    }
    assert told == [risk.RiskState.AT_RISK]
    assert process.chores.warnings.told[server].why == reason.why(
        reason.Reason.AT_RISK, times=3.0, waiting=2.0
    )
    ask = requests.ClusterOperations(world.store, process)
    assert ask.notices([server])['notices'] == {
        server: metadata(world, server)
    }
    begun = world.now
    name(world)
    process.cycle()
    world.now = begun + 899
    process.cycle()
    # What comes and goes is told once.
    assert told == [risk.RiskState.AT_RISK]
    world.now = begun + 900
    process.cycle()
    assert told == [risk.RiskState.AT_RISK, risk.RiskState.SAFE]
    assert metadata(world, server) == {}
    assert process.chores.warnings.told == {}
    assert ask.notices([server]) == {'notices': {}}


def test_it_is_told_again_only_after_the_hold(world, server, process, told):
    name(world, server)
    process.cycle()
    name(world)
    world.now += 900
    process.cycle()
    name(world, server)
    world.now += 899
    process.cycle()
    assert told == [risk.RiskState.AT_RISK, risk.RiskState.SAFE]
    world.now += 1
    process.cycle()
    process.cycle()
    assert told[2:] == [risk.RiskState.AT_RISK]
    assert notice_channels.AT_RISK in metadata(world, server)


def test_as_many_are_written_in_a_cycle_as_nova_can_bear(
    world, server, process, monkeypatch
):
    monkeypatch.setattr(at_risk, 'AT_ONCE', 2)
    world.cloud.add_host('h2', 100)
    more = [server]
    for n in range(4):
        made = world.post(f'more{n}')
        world.cloud.build(made, 'h2', test_service.NEED)
        more.append(made)
    name(world, *more)
    process.cycle()
    counts = []
    for _ in range(4):
        counts.append(
            sum(
                notice_channels.AT_RISK in metadata(world, each)
                for each in more
            )
        )
        process.cycle()
    assert counts == [2, 4, 5, 5]


def test_metadata_unwritten_by_a_dead_process_are_written_by_the_next(
    world, server, process, told
):
    name(world, server)
    world.cloud.broken[f'POST /servers/{server}/metadata'] = 503
    process.cycle()
    assert metadata(world, server) == {}
    world.cloud.broken.clear()
    process.cycle()
    assert notice_channels.AT_RISK in metadata(world, server)
    assert told == [risk.RiskState.AT_RISK]


def test_a_server_that_takes_no_metadata_is_not_asked_for_ever(
    world, server, process, told
):
    name(world, server)
    world.cloud.broken[f'POST /servers/{server}/metadata'] = 409
    process.cycle()
    world.cloud.broken.clear()
    process.cycle()
    assert metadata(world, server) == {}
    assert told == [risk.RiskState.AT_RISK]


def test_once_it_is_off_everybody_is_told_otherwise(
    world, server, process, told
):
    name(world, server)
    process.cycle()
    world.warnings = at_risk.AtRiskOptions(most=0, hold_s=900.0)
    world.now += 900
    process = another(world, 'three')
    assert metadata(world, server) == {}
    assert told == [risk.RiskState.AT_RISK, risk.RiskState.SAFE]
    world.now += 900
    process.cycle()
    assert world.store.risks.all_warnings() == {}


def test_of_a_server_that_is_gone_nothing_is_kept(
    world, server, process, told
):
    name(world, server)
    process.cycle()
    world.cloud.remove(server)
    process.cycle()
    assert world.store.risks.all_warnings() == {}
    assert told == [risk.RiskState.AT_RISK]


def test_an_old_leader_tells_no_owner(world, server, process, told):
    name(world, server)
    process.cycle()
    old = process.leads()
    another(world, 'three')
    [known] = world.store.risks.all_warnings().values()
    for write in (world.store.risks.add, world.store.risks.change):
        with pytest.raises(exception.Deposed):
            write(known.over(world.now), old)
    with pytest.raises(exception.Deposed):
        world.store.risks.remove(server, old)
    assert told == [risk.RiskState.AT_RISK]


@pytest.mark.parametrize(
    'wrong', [{'most': -1}, {'hold_s': -1.0}, {'hold_s': math.inf}]
)
def test_impossible_risk_rules_are_refused(wrong):
    with pytest.raises(ValueError, match='must be at least 0'):
        at_risk.AtRiskOptions(**wrong)


def test_callers_and_listeners_are_told_why(world, server, process):
    heard = []
    watch = event_notifications.RequestWatch(
        world.store, process, heard.extend, 'c1'
    )
    ask = requests.ClusterOperations(world.store, process)
    name(world, server, times=math.inf)
    process.cycle()
    told = ask.request(server)['request']
    [known] = told['at_risk']
    assert known['state'] == 'at_risk'
    assert told['summary'][-1] == (
        f'Server {server} may have to make room: its owner uses 1000.0 times'
        ' their share, and 2 requests wait for room.'
    )
    begun = world.now
    name(world)
    world.now += 900
    process.cycle()
    assert ask.request(server)['request']['at_risk'] == []
    first, last = heard
    assert first.event == 'fairness.server.at_risk'
    assert last.event == 'fairness.server.safe'
    assert first.payload == {
        **known,
        'version': '1.4',
        'host': 'c1',
        'at': moments.stamp(begun),
        'project_id': 'the-project',
        'user_id': 'u',
    }
    queue = watch.queue()
    assert (queue.at_risk, queue.warned) == (0, {'at_risk': 1, 'safe': 1})


def test_those_that_nova_fails_for_keep_no_others_back(
    world, server, process, monkeypatch
):
    other = 'other'
    world.cloud.live(other, 1, '1970-01-01T00:00:01.000000')
    world.cloud.build(other, 'h1', {'VCPU': 1})
    monkeypatch.setattr(at_risk, 'AT_ONCE', 1)
    world.cloud.broken[f'POST /servers/{server}/metadata'] = 500
    name(world, server, other)
    for _ in range(4):
        world.now += 10
        process.cycle()
    assert notice_channels.AT_RISK in metadata(world, other)
