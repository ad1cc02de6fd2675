# SPDX-License-Identifier: Apache-2.0

"""In a real cloud full of preemptible servers some make room for normal ones.

Their hosts are those of Nova's fake driver.
"""

import time

import pytest

from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from tests.fixtures import panels
from tests.fixtures.nova_cloud import scraping
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.rooms',
)

WAYS = {
    'shelve': ['shelve'],
    'stop': ['stop', 'shelve'],
    'suspend': ['suspend', 'shelve'],
    'snapshot_delete': ['createImage', 'delete'],
    'delete': ['delete'],
}
"""What is done to whom, by what its owner chose."""

WIDE = 'wide'
MOST_METADATA = 128
"""Of a server, as Nova has it unless operators choose otherwise."""


@pytest.fixture(scope='module')
def servers():
    """None but those of a test."""
    return {}


@pytest.mark.slow
def test_victims_leave_by_their_chosen_way_and_return(room):
    room.start(room_actions='shelve', room_owner_actions=','.join(WAYS))
    chosen = dict(
        zip(WAYS, room.fill(*({rooms.BY: way} for way in WAYS)), strict=True)
    )
    begun = time.time()
    asked = room.ask(len(WAYS))
    told = room.await_told(len(WAYS))
    assert told.keys() == set(chosen.values())
    assert min(told.values()) - begun >= evictor.LEAST_NOTICE_S - 1
    for way, server in chosen.items():
        assert room.metadata(server)[notice_channels.LEAVES_BY] == way
        assert room.leave(server)['reason'] == 'makes_room'
    room.await_status(asked, 'ACTIVE')
    assert time.time() >= min(told.values())
    for way, server in chosen.items():
        left = '' if 'delete' in WAYS[way] else 'SHELVED_OFFLOADED'
        room.await_status([server], left)
        assert room.left_by(server) == WAYS[way]
    stay = room.servers.keys() - told.keys()
    assert room.untouched() == stay
    assert {room.status(each) for each in stay} == {'ACTIVE'}
    assert room.is_full()
    path = f'/v2/images?name=fairness-{chosen["snapshot_delete"]}'
    [image] = room.cloud.admin.get('image', path)['images']
    owner = room.cloud.users[rooms.RICH].project
    assert (image['owner'], image['status']) == (owner, 'active')
    # There is room again: they come back by themselves.
    back = {w: s for w, s in chosen.items() if 'delete' not in WAYS[w]}
    room.cloud.delete(asked)
    room.await_status(back.values(), 'ACTIVE')
    watching.eventually(lambda: not room.told(), room.told)
    for way, server in back.items():
        assert room.acted(server) == [*WAYS[way], 'unshelve']
    assert room.untouched() == stay
    assert sum(room.used().values()) == len(stay) + len(back)
    with scraping.running(room.cloud) as prometheus:
        panels.await_values('evictions', prometheus.query)


@pytest.mark.slow
def test_room_is_made_although_victims_are_deleted_locked_or_unreachable(room):
    room.start(room_actions='stop,delete')
    stuffed = {f'k{n}': 'v' for n in range(MOST_METADATA - 1)}
    deleted, locked, untold = room.fill({}, {}, stuffed)
    asked = room.ask(3)
    assert room.await_told(2).keys() == {deleted, locked}
    at = rooms.seconds(room.leave(untold)['leaves_at'])
    assert at >= time.time() + evictor.LEAST_NOTICE_S - 60
    alice = room.cloud.users[rooms.RICH]
    lock = {'lock': {'locked_reason': 'mine'}}
    alice.post('compute', f'/servers/{locked}/action', lock)
    alice.delete('compute', f'/servers/{deleted}')
    # The room of the one is free before the notices of the others are over.
    watching.eventually(
        lambda: 'ACTIVE' in {room.status(each) for each in asked},
        lambda: [room.cloud.request(each) for each in asked],
    )
    assert time.time() < at
    room.await_status(asked, 'ACTIVE')
    assert time.time() >= at
    assert {room.status(each) for each in (locked, untold)} == {''}
    assert room.acted(deleted) == ['delete']
    assert room.acted(locked) == room.acted(untold) == ['stop', 'delete']
    stay = room.servers.keys() - {deleted, locked, untold}
    assert room.untouched() == stay
    assert {room.status(each) for each in stay} == {'ACTIVE'}
    assert not room.told()
    assert room.is_full()


@pytest.mark.slow
def test_victims_stay_when_the_preemptor_needs_no_room(room):
    room.start(room_actions='shelve')
    room.fill()
    first, second = room.ask(2)
    room.await_told(2)
    room.cloud.delete([first])
    watching.eventually(lambda: len(room.told()) == 1, room.told)
    # Room comes free elsewhere: the other need not wait for its own either.
    [other] = room.told()
    gone = next(
        each
        for each in room.servers
        if each != other and room.host(each) != room.host(other)
    )
    room.cloud.delete([gone])
    del room.servers[gone]
    room.await_status([second], 'ACTIVE')
    watching.eventually(lambda: not room.told(), room.told)
    assert {room.status(each) for each in room.servers} == {'ACTIVE'}
    assert room.untouched() == room.servers.keys()
    assert room.is_full()


@pytest.fixture
def two_vcpu_flavor(cloud):
    """A flavor of two vCPUs."""
    about = {'id': WIDE, 'name': WIDE, 'vcpus': 2, 'ram': 128, 'disk': 1}
    cloud.admin.post('compute', '/flavors', {'flavor': about})
    yield WIDE
    cloud.admin.delete('compute', f'/flavors/{WIDE}')


@pytest.mark.slow
def test_a_victim_that_was_migrated_stays(room, two_vcpu_flavor):
    room.start(room_actions='shelve')
    room.fill()
    # Each of two hosts has half of what is asked for.
    holes = {}
    for each, owner in room.servers.items():
        if owner == rooms.RICH and len(holes) < 2:
            holes.setdefault(room.host(each), each)
    room.cloud.delete(list(holes.values()))
    for each in holes.values():
        del room.servers[each]
    asked = room.ask(1, two_vcpu_flavor)
    [(told, at)] = room.await_told(1).items()
    here = room.host(told)
    [there] = holes.keys() - {here}
    room.cloud.act(told, 'os-migrateLive', host=there, block_migration='auto')
    room.await_status(asked, 'ACTIVE')
    assert time.time() < at
    watching.eventually(lambda: not room.told(), room.told)
    assert (room.host(told), room.host(asked[0])) == (there, here)
    assert room.untouched() == room.servers.keys()
    assert {room.status(each) for each in room.servers} == {'ACTIVE'}
    assert room.is_full()


@pytest.mark.slow
def test_a_hypervisor_that_is_down_makes_no_room(room):
    room.start(room_actions='shelve')
    room.fill()
    asked = room.ask(1)
    [first] = room.await_told(1)
    down = room.hosts.kill(room.host(first))
    try:
        # It is told that it stays, and another one that it leaves.
        watching.eventually(
            lambda: room.told() and first not in room.told(),
            lambda: (room.told(), room.cloud.request(asked[0])),
        )
        [(second, at)] = room.told().items()
        assert room.servers[second] == rooms.RICH
        assert room.host(second) not in down
        room.await_status(asked, 'ACTIVE')
        assert time.time() >= at
        assert room.host(asked[0]) not in down
        assert room.left_by(second) == ['shelve']
    finally:
        room.hosts.start()
        room.hosts.await_up()
    assert room.status(first) == 'ACTIVE'
    assert room.untouched() == room.servers.keys() - {second}
    assert room.is_full()
