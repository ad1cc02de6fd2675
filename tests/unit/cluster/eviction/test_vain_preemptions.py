# SPDX-License-Identifier: Apache-2.0

"""Whoever lets others leave and does not use the room waits longer."""

import uuid as uuid_module

import pytest

from nova_fairness import exception
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import vain_preemptions
from nova_fairness.cluster.store import records
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import small_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption

E, R, S = request.Event, reason.Reason, request.State
DAY_S = 86400.0

world = test_service.world
process = test_preemption.process
spot = test_preemption.spot


class Attack:
    """A project that asks, lets others leave, and takes it back."""

    def __init__(self, world, project='rich'):
        self.store = world.store
        self.epoch = world.process('attack').leads()
        self.project = project

    def once(self, now, why=R.TAKEN_BACK, event=E.CANCEL, leaving=('s1',)):
        name = str(uuid_module.uuid4())
        asked = small_cloud.waiting_request(name, project=self.project, at=now)
        self.store.add_request(asked, f'cast-{name}', now)
        room = records.ReservedRoom(('h1',), leaving, now, now + 1500.0)
        self.store.reserve_room(asked, room, self.epoch)
        self.store.step(asked, event, self.epoch, reason.why(why), now + 130.0)


@pytest.fixture
def attack(world):
    return Attack(world)


def watched(attack, least_s=300.0):
    return vain_preemptions.VainPreemptionDelays(attack.store, least_s, 120.0)


def test_an_attacker_of_a_hundred_tries_lets_few_leave(attack):
    found, now, times = watched(attack), 1e6, []
    for _ in range(100):
        now += 300.0
        if now >= found.delay_ends(now).get('rich', 0.0):
            attack.once(now)
            times.append(now)
    # 300, 600, 1200, ... seconds after each: of 100 tries in 8 hours.
    assert 4 <= len(times) <= 8
    in_an_hour = max(
        sum(at <= each < at + 3600.0 for each in times) for at in times
    )
    assert in_an_hour <= 4
    # Without a delay all of them would have.
    assert watched(attack, 0.0).delay_ends(now) == {}


def test_many_at_once_are_followed_by_a_day(attack):
    for _ in range(50):
        attack.once(1e6)
    found = watched(attack).delay_ends(1e6 + 200.0)
    assert found == {'rich': 1e6 + 130.0 + DAY_S}
    assert watched(attack).delay_ends(1e6 + 131.0 + DAY_S) == {}


def test_a_new_leader_knows_requests_that_had_room_in_vain(attack):
    old = watched(attack)
    assert old.delay_ends(1e6) == {}
    attack.once(1e6)
    assert old.delay_ends(1e6 + 140.0) == {'rich': 1e6 + 430.0}
    assert watched(attack).delay_ends(1e6 + 140.0) == {'rich': 1e6 + 430.0}
    assert old.delay_ends(1e6 + 431.0) == {}


def test_requests_of_other_projects_are_not_delayed(world, attack):
    attack.once(1e6, R.CANCELLED_BY_OPERATOR)
    attack.once(1e6, leaving=())
    assert watched(attack).delay_ends(1e6 + 140.0) == {}


def record(ended_s, state=S.ENDED, hosts=('h1',)):
    asked = small_cloud.waiting_request('r', state=state)
    room = records.ReservedRoom(('h1',), ('s1',), 1000.0, 2500.0)
    why = reason.why(R.SERVER_DELETED)
    return records.RequestRecord(
        asked, 'c', why, 1000.0 + ended_s, hosts, room
    )


@pytest.mark.parametrize(
    ('found', 'is_one'),
    [
        # Within the notice nobody left.
        (record(119.0, S.CANCELLED), False),
        (record(121.0, S.CANCELLED), True),
        (record(9000.0, S.FAILED), True),
        (record(9000.0, S.EXPIRED), True),
        (record(200.0), True),
        (record(421.0), False),
        # It was deleted before it was sent.
        (record(9000.0, hosts=()), True),
    ],
)
def test_a_preemption_with_unused_room_counts_as_vain(found, is_one):
    assert vain_preemptions.is_in_vain(found, 300.0, 120.0) is is_one


def test_a_project_that_wastes_room_causes_no_further_eviction(
    world, process, spot
):
    go = test_preemption.go
    first = world.post('r1', project='rich')
    go(
        world,
        process,
        test_preemption.LEAST_S + test_preemption.NOTICE_S + 120,
    )
    assert (spot, 'shelve') in world.cloud.acted
    world.cloud.build(first, 'h1', test_service.NEED)
    go(world, process, 60)
    world.cloud.remove(first)
    go(world, process, 120)
    assert world.state(first) is S.ENDED
    assert process.last().snapshot.in_vain.keys() == {'rich'}


def test_an_owner_cannot_hold_a_request_that_others_leave_for(
    world, process, spot
):
    ask = requests.ClusterOperations(world.store, process)
    server = world.post('r1', project='rich')
    test_preemption.go(world, process, test_preemption.LEAST_S + 60)
    assert process.last().snapshot.promised.keys() == {server}
    with pytest.raises(exception.IllegalStep, match='make room for it'):
        ask.hold(server, False)
    assert world.store.request(server).request.hold is None
    # An operator may, and the servers need not leave then.
    assert ask.hold(server, True)['request']['held_by'] == 'operator'


def test_excess_vain_preemptions_expire_hour_by_hour():
    at_once = [0.0] * 30
    for hours, count in ((0, 30), (1, 20), (2.5, 5), (3, 0), (9, 0)):
        assert (
            preemption.victims_above_limit(at_once, 10, hours * 3600.0)
            == count
        )
    usual = [n * 360.0 for n in range(40)]
    assert preemption.victims_above_limit(usual, 10, usual[-1]) <= 10
