# SPDX-License-Identifier: Apache-2.0

"""Servers that do nothing leave, beside a fake cloud; the store is real."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from tests.fixtures.patience import wait_for_value
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_time_limits

world = test_service.world
go, leave, state = (
    test_time_limits.go,
    test_time_limits.leave,
    test_time_limits.state,
)
metadata = test_time_limits.metadata
S = eviction.EvictionState
DAY_S = 86400.0
RULES = idle_reclaim.IdleOptions(after_s=7 * DAY_S, notice_s=DAY_S)
TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(marks=True)
)


@pytest.fixture
def server(world):
    """A server that runs on h1."""
    world.idling = RULES
    return running(world)


def running(world, **more):
    made, process = world.post('r1', **more), world.process(terms=TERMS)
    flavor = {'vcpus': 4, 'ram': 100, 'disk': 0}
    world.cloud.servers[made]['flavor'] = flavor
    process.cycle()
    world.cloud.build(made, 'h1', test_service.NEED)
    process.cycle()
    world.tick += 31
    return made


@pytest.fixture
def process(world, server):
    made = world.process('two', terms=TERMS)
    made.cycle()
    world.tick += 31
    return made


def see(world, server, days, host='h1'):
    world.idle = {host: {server: days * DAY_S}}


def test_a_server_idle_for_a_week_gets_a_notice_and_leaves_a_day_later(
    world, server, process
):
    see(world, server, 6.9)
    process.cycle()
    assert leave(world, server) is None
    assert process.chores.idling.count == 0
    see(world, server, 7.5)
    go(world, process, world.now + 120)
    found = leave(world, server)
    assert (found.state, found.cause) == (S.TOLD, eviction.EvictionCause.IDLE)
    assert found.why == reason.why(reason.Reason.IDLE, idle_h=180.0)
    assert found.at >= world.now + DAY_S - 180
    told = metadata(world, server)
    assert told[notice_channels.LEAVES_BY] == 'shelve'
    assert told[notice_channels.LEAVES_WHY] == (
        'it did next to nothing for 180 h'
    )
    assert process.chores.idling.count == 1
    go(world, process, found.at - 3600, every=3600.0)
    assert world.cloud.acted == []
    go(world, process, found.at + 600, every=120.0)
    assert world.cloud.acted == [(server, 'shelve')]
    assert state(world, server) is S.GONE


def test_a_server_that_works_again_is_not_reclaimed(world, server, process):
    see(world, server, 8)
    go(world, process, world.now + 120)
    assert state(world, server) is S.TOLD
    world.idle = {'h1': {}}
    process.cycle()
    assert (state(world, server), metadata(world, server)) == (S.SPARED, {})
    # Idle for long enough again, it is told again.
    see(world, server, 7)
    go(world, process, world.now + 120)
    assert state(world, server) is S.TOLD


def test_no_server_leaves_while_its_idleness_is_unknown(
    world, server, process
):
    see(world, server, 8)
    go(world, process, world.now + 120)
    found = leave(world, server)
    world.idle = {}
    go(world, process, found.at - idle_reclaim.SURE_S - 600, every=600.0)
    assert state(world, server) is S.TOLD
    go(world, process, found.at + 600, every=300.0)
    assert state(world, server) is S.SPARED
    assert world.cloud.acted == []


@pytest.mark.repeated
@pytest.mark.parametrize(('share', 'is_told'), [(1, True), (99, False)])
def test_idle_servers_of_owners_over_their_share_get_notices_sooner(
    world, server, process, share, is_told
):
    world.accounts = (
        cluster.Account('the-project', None, share),
        cluster.Account('another', None, 9),
    )
    go(world, process, world.now + 5 * DAY_S, every=3600.0)
    see(world, server, 3)
    process.cycle()
    assert (leave(world, server) is not None) == is_told


@pytest.mark.parametrize(
    ('factor', 'days'), [(1.0, 7), (0.5, 7), (0.25, 3.5), (0.01, 1.75)]
)
def test_the_allowed_idle_time_depends_on_the_share(factor, days):
    assert RULES.required_idle_s(factor) == days * DAY_S


@pytest.mark.parametrize(
    'given',
    [
        {'after_s': -1.0},
        {'after_s': float('nan')},
        {'after_s': float('inf')},
        {'notice_s': 0.0},
        {'notice_s': float('nan')},
    ],
)
def test_impossible_idle_times_are_refused(given):
    with pytest.raises(ValueError, match='the idle time must be at least 0'):
        idle_reclaim.IdleOptions(**given)


def test_a_report_on_a_server_of_another_host_is_ignored(
    world, server, process
):
    see(world, server, 99, host='h9')
    process.cycle()
    assert leave(world, server) is None


@pytest.mark.parametrize(
    'rules',
    [
        idle_reclaim.IdleOptions(),
        idle_reclaim.IdleOptions(7 * DAY_S, spared=frozenset({'the-project'})),
    ],
    ids=['off', 'spared'],
)
def test_an_exempted_server_stays_although_it_got_a_notice(
    world, server, process, rules
):
    see(world, server, 8)
    go(world, process, world.now + 120)
    assert state(world, server) is S.TOLD
    world.idling = rules
    world.tick += 31
    other = world.process('three', terms=TERMS)
    other.cycle()
    world.tick += 31
    other.cycle()
    assert state(world, server) is S.SPARED
    go(world, other, world.now + 2 * DAY_S, every=3600.0)
    assert world.cloud.acted == []


def test_idle_preemptible_servers_stay(world):
    world.idling = RULES
    server = running(world, hints={parser.MARK: ['true']})
    made = world.process('two', terms=TERMS)
    made.cycle()
    world.tick += 31
    see(world, server, 30)
    for _ in range(3):
        made.cycle()
    assert leave(world, server) is None


def test_the_number_of_simultaneous_notices_is_bounded(world, server, process):
    many = {}
    for n in range(idle_reclaim.AT_ONCE + 5):
        world.cloud.add_server(f's{n}', 'the-project')
        world.cloud.build(f's{n}', 'h1', {'VCPU': 0})
        many[f's{n}'] = 9 * DAY_S
    world.idle = {'h1': many}
    process.cycle()
    found = world.store.leaves.newest_in_states(eviction.LIVE)
    assert len(found) == idle_reclaim.AT_ONCE
    process.cycle()
    assert len(world.store.leaves.newest_in_states(eviction.LIVE)) == len(many)


# What agents say -----------------------------------------------------------


class FakeAgents:
    def __init__(self):
        self.now_s = 0.0
        self.said = {}

    def __call__(self, host):
        if host not in self.said:
            raise exception.HostNotReached(host)
        return self.said[host]


@pytest.fixture
def agents():
    return FakeAgents()


@pytest.fixture
def idle(agents):
    made = agent_reports.Idle(agents, lambda: agents.now_s)
    yield made
    made.stop()


def test_agents_are_asked_in_parallel_and_old_answers_are_ignored(
    agents, idle
):
    agents.said['h1'] = {
        'host': 'h1',
        'idle': {'s1': 9.0, 's2': 'long', 's3': -1, 's4': float('inf')},
    }
    assert idle.known(['h1']) == {}
    wait_for_value(lambda: idle.known(['h1']) == {'h1': {'s1': 9.0}})
    agents.said.clear()
    agents.now_s += 3 * agent_reports.AGAIN_S
    assert idle.known(['h1']) == {'h1': {'s1': 9.0}}
    agents.now_s += 1
    assert idle.known(['h1']) == {}


@pytest.mark.parametrize(
    'answer',
    [None, [], {}, {'host': 'h1'}, {'host': 'h2', 'idle': {'s1': 9.0}}],
)
def test_an_invalid_answer_of_an_agent_is_ignored(
    agents, idle, answer, caplog
):
    agents.said['h1'] = answer
    wait_for_value(
        lambda: (
            idle.known(['h1'])
            or 'host h1 says nothing of idle servers' in caplog.text
        )
    )
    assert idle.known(['h1']) == {}


def test_no_server_is_idle_for_longer_than_it_runs():
    new, old, unknown = (
        nova.Server(name, 'p', 'u', 'ACTIVE', '', 'h', (), begin)
        for name, begin in (('new', 900.0), ('old', 100.0), ('unknown', None))
    )
    here = {each.uuid: each for each in (new, old, unknown)}
    told = {'h': dict.fromkeys([*here, 'x'], 500.0), 'g': {'old': 800.0}}
    found = {
        each.uuid: s
        for each, s in idle_reclaim._reported_idle(here, told, 1000.0)
    }
    assert found == {'new': 100.0, 'old': 500.0, 'unknown': 500.0}
