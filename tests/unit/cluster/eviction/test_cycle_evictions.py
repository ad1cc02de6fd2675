# SPDX-License-Identifier: Apache-2.0

"""A cycle reads once who leaves, and sees what is written meanwhile."""

import pytest

from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.eviction import retirement
from nova_fairness.cluster.eviction import watermark
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction
from nova_fairness.model import reason
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption

world = test_service.world
E = eviction.EvictionEvent
LONG_AGO_S = 2 * cycle_evictions.REMEMBERED_S
WHY = reason.why(reason.Reason.IDLE, idle_h=1.0)


@pytest.fixture
def statements(monkeypatch):
    """Conditions of all that was read of the table, in their order."""
    made, read = [], leaves_module.EvictionTable._newest_by_server

    def newest(leaves, *wanted):
        found = read(leaves, *wanted)
        made.append(str(wanted[0]))
        return found

    monkeypatch.setattr(
        leaves_module.EvictionTable, '_newest_by_server', newest
    )
    return made


@pytest.fixture
def all_on(world):
    """Every kind of work that looks at who leaves."""
    world.idling = idle_reclaim.IdleOptions(after_s=1e9)
    world.warnings = at_risk.AtRiskOptions(most=3)
    world.retiring = retirement.RetirementOptions(is_on=True)
    world.freeing = watermark.WatermarkOptions(lower=0.01)
    return test_preemption.process_of(world, 'one')


@pytest.fixture
def epoch(world):
    world.process().cycle()
    return world.store.leader().epoch


def left_of(world, server='s1'):
    return eviction.Eviction(
        server,
        'p',
        'u',
        eviction.EvictionCause.IDLE,
        WHY,
        (eviction.EvictionAction.STOP,),
        5.0,
        world.now,
    )


def lives(condition):
    return 'leaves.state IN' in condition


def test_a_cycle_reads_live_evictions_once(world, all_on, statements):
    server = test_preemption.runs(world, all_on, 's1', 'h1')
    world.go(test_preemption.LEAST_S)
    world.post('r1', project='other')
    all_on.cycle()
    assert server in world.store.leaves.newest_in_states(eviction.LIVE)
    statements.clear()
    all_on.cycle()
    # The victim of the reservation is among those that leave: it is not asked
    # for by name.
    assert [lives(each) for each in statements] == [True]


def test_a_cycle_that_chooses_reads_one_row_of_that_server_besides(
    world, all_on, statements
):
    test_preemption.runs(world, all_on, 's1', 'h1')
    world.go(test_preemption.LEAST_S)
    world.post('r1', project='other')
    statements.clear()
    all_on.cycle()
    # Its newest turn, after all other servers were read.
    assert [lives(each) for each in statements] == [True, False]


def test_a_server_that_is_named_is_known_however_long_ago_it_left(
    world, epoch, statements
):
    leaves = world.store.leaves
    old = leaves.add(left_of(world), None, epoch)
    old = leaves.step(old, E.SPARE, epoch, world.now)
    now = world.now + LONG_AGO_S
    statements.clear()
    with cycle_evictions.follow_evictions(leaves, ('s1', 's2'), now) as found:
        assert found.of_servers(['s1', 's2']) == {'s1': old}
        assert found.in_states(eviction.LIVE) == {}
        assert (
            found.live_or_changed_since(now - cycle_evictions.REMEMBERED_S)
            == {}
        )
    assert [lives(each) for each in statements] == [True, False]
    with cycle_evictions.follow_evictions(leaves, (), now) as found:
        assert found.of_servers(['s1']) == {}


def test_changes_are_seen_at_once_and_not_after_the_cycle(world, epoch):
    leaves = world.store.leaves
    with cycle_evictions.follow_evictions(leaves, (), world.now) as found:
        late = leaves.add(left_of(world, 's2'), None, epoch)
        soon = leaves.add(left_of(world, 's3'), None, epoch)
        told = leaves.step(soon, E.TELL, epoch, world.now, 1.0)
        # Those that are due first are first.
        assert list(found.in_states(eviction.UNTOUCHED)) == ['s3', 's2']
        spared = leaves.step(told, E.SPARE, epoch, world.now)
        assert found.in_states(eviction.LIVE) == {'s2': late}
        assert found.live_or_changed_since(world.now)['s3'] == spared
        assert found.live_or_changed_since(world.now + 1) == {'s2': late}
    leaves.step(late, E.SPARE, epoch, world.now)
    assert found.in_states(eviction.LIVE) == {'s2': late}


def test_a_change_that_is_told_late_hides_no_newer_one(world, epoch):
    leaves = world.store.leaves
    first = leaves.add(left_of(world), None, epoch)
    with cycle_evictions.follow_evictions(leaves, (), world.now) as found:
        spared = leaves.step(first, E.SPARE, epoch, world.now)
        found.record(first)
        assert found.of_servers(['s1']) == {'s1': spared}
        again = leaves.add(left_of(world), spared, epoch)
        found.record(spared)
        assert found.of_servers(['s1']) == {'s1': again}
