# SPDX-License-Identifier: Apache-2.0

"""Servers that are done retire, and a part of the cloud stays free; beside a
fake cloud."""

import functools

import pytest

from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import preemption as preemption_module
from nova_fairness.cluster.eviction import retirement
from nova_fairness.cluster.eviction import watermark as watermark_module
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import eviction
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import risk as next_module
from nova_fairness.planners.preemption import watermark
from tests.unit.cluster.eviction import test_idle_reclaim
from tests.unit.cluster.eviction import test_time_limits

world = test_time_limits.world
leave, state = test_time_limits.leave, test_time_limits.state
metadata = test_time_limits.metadata
S = eviction.EvictionState
TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(marks=True)
)
HINTS = {'fairness:preemptible': ['true']}


@pytest.fixture
def server(world):
    """A preemptible server on h1, of whom it is said that it is next."""
    world.warnings = at_risk.AtRiskOptions(most=10)
    made = test_idle_reclaim.running(world, hints=HINTS)
    world.following = lambda *_: [next_module.NextVictim(made, 3.0, 2)]
    return made


@pytest.fixture
def process(world, server):
    world.retiring = retirement.RetirementOptions(is_on=True)
    return leading(world, 'two')


def leading(world, name):
    made = world.process(name, terms=TERMS)
    made.cycle()
    world.tick += 31
    made.cycle()
    return made


def cycles(world, process, count=4):
    for _ in range(count):
        world.now += 10
        process.cycle()


def shuts_down(world, server):
    world.cloud.servers[server]['status'] = 'SHUTOFF'


def says_done(world, server):
    told = world.cloud.servers[server].setdefault('metadata', {})
    told[nova.DONE] = 'true'


@pytest.mark.parametrize('done', [shuts_down, says_done])
def test_a_server_that_reports_done_leaves_at_once_without_cost(
    world, server, process, done
):
    cycles(world, process)
    assert leave(world, server) is None
    done(world, server)
    begun = world.now
    cycles(world, process, 3)
    found = leave(world, server)
    assert found.cause is eviction.EvictionCause.RETIRES
    assert found.turn == 0
    assert found.acted_at is not None
    assert found.acted_at - begun < evictor.LEAST_NOTICE_S
    assert world.cloud.acted == [(server, 'shelve')]
    # When its owner starts it again it is neither done nor told to leave.
    assert metadata(world, server).keys() <= {notice_channels.AT_RISK}
    assert (found.answered, found.lost_vcpu_s) == (True, 0.0)
    [known] = world.store.leaves.preemptions(None, None, 9)
    assert known.why.sentence.startswith('it is done, its owner uses 3.0')


def test_a_retired_server_does_not_return_by_itself(world, server, process):
    shuts_down(world, server)
    cycles(world, process, 8)
    assert state(world, server) is S.GONE
    cycles(world, process, 8)
    assert world.cloud.acted == [(server, 'shelve')]


def test_a_server_that_reports_done_stays_while_no_request_waits(
    world, server, process
):
    world.following = lambda *_: []
    shuts_down(world, server)
    cycles(world, process)
    assert leave(world, server) is None


def test_without_the_option_no_server_retires(world, server):
    process = leading(world, 'two')
    shuts_down(world, server)
    cycles(world, process)
    assert leave(world, server) is None


def test_a_restarted_server_does_not_retire(world, server, process):
    shuts_down(world, server)
    world.cloud.broken[f'POST /servers/{server}/metadata'] = 503
    cycles(world, process, 2)
    assert state(world, server) is S.CHOSEN
    world.cloud.servers[server]['status'] = 'ACTIVE'
    world.cloud.broken.clear()
    cycles(world, process, 2)
    assert (state(world, server), world.cloud.acted) == (S.SPARED, [])


def test_an_unreadable_server_does_not_count_as_done(world, server, process):
    says_done(world, server)
    world.cloud.broken[f'GET /servers/{server}'] = 503
    cycles(world, process, 2)
    assert leave(world, server) is None


def marked(world, lower):
    """All of the one host is used, and a part of it is to be free."""
    when = preemption.PreemptionRules(least_run_s=0.0)
    world.freeing = watermark_module.WatermarkOptions(lower=lower, when=when)
    world.plan = functools.partial(
        watermark.plan, queue=queue.plan, upper=lower
    )
    return leading(world, 'two')


def test_servers_leave_until_the_mark_of_free_room_and_return(world, server):
    process = marked(world, 0.5)
    cycles(world, process, 2)
    found = leave(world, server)
    assert (found.cause, found.state) == (eviction.EvictionCause.FREE, S.TOLD)
    assert found.why.sentence.endswith('are to be free, 0.0 % are')
    assert notice_channels.LEAVES_AT in metadata(world, server)
    test_time_limits.go(world, process, found.at + 300)
    assert world.cloud.acted[0] == (server, 'shelve')


def test_a_server_stays_when_enough_room_became_free(world, server):
    process = marked(world, 0.5)
    cycles(world, process, 2)
    assert state(world, server) is S.TOLD
    world.cloud.add_host('h2', 8)
    cycles(world, process, 2)
    assert (state(world, server), world.cloud.acted) == (S.SPARED, [])


def test_a_stopped_server_that_frees_nothing_stays_for_a_while(world, server):
    world.cloud.takes_no_snapshots = True
    launched = '1970-01-01T00:16:40'
    world.cloud.servers[server]['OS-SRV-USG:launched_at'] = launched
    process = marked(world, 0.5)
    cycles(world, process, 2)
    at = leave(world, server).at
    world.now = at - 10
    while state(world, server) is not S.STAYS:
        assert world.now < at + 600
        cycles(world, process, 1)
    assert world.cloud.acted == [(server, 'shelve'), (server, 'os-start')]
    assert notice_channels.LEAVES_AT not in metadata(world, server)
    # It is not asked to go again and again.
    test_time_limits.go(
        world,
        process,
        world.now + preemption_module.PreemptionOptions.again_s - 60,
    )
    assert state(world, server) is S.STAYS
    test_time_limits.go(world, process, world.now + 120)
    assert state(world, server) is S.TOLD


def test_servers_with_notices_stay_after_the_mark_is_removed(world, server):
    process = marked(world, 0.5)
    cycles(world, process, 2)
    world.freeing = watermark_module.WatermarkOptions()
    process = leading(world, 'three')
    assert state(world, server) is S.SPARED
