# SPDX-License-Identifier: Apache-2.0

"""In a real cloud full of preemptible servers some make room for a normal one.

Their hosts are those of Nova's fake driver.
"""

import datetime as dt
import threading
import time

import pytest

from nova_fairness.cluster import leaving
from tests.fixtures import striking
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import filling
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

HOSTS, VCPUS = 3, 2
RICH, POOR, OWNER = 'alice', 'bob', 'carol'
FULL = (*(RICH,) * 5, POOR)
"""Whose preemptible servers fill the hosts."""

OPTIONS = {
    'make_room': 'true',
    'preemptible_marks': 'true',
    'room_patience': '1',
    'room_least_run': '1',
    'end_notice': '120',
    # As long as many starts of the service take.
    'end_patience': '300',
    'lease': '1',
}
SLOT = waiting.SLOTS[waiting.SERVICE]
FIRST_WRITES, LATER_WRITES = 3, 7
"""At which the service dies first, and how much later each time."""

LEAST_DEATHS = 6


class Room:
    """Hosts that are full, and what is asked for.

    :ivar servers: preemptible ones by UUID, with their owners.
    """

    def __init__(self, cloud, queue, hosts):
        self.cloud, self._queue, self._hosts = cloud, queue, hosts
        self.servers, self._booted = {}, []

    def start(self, **options):
        self._queue.restart(**OPTIONS, **options)
        self.cloud.capacity()

    def fill(self):
        for number, user in enumerate(FULL):
            name = f'{user}-lent-{number}'
            made = self.boot(user, name, {'fairness:preemptible': 'true'})
            self.servers[made] = user
        for each in self.servers:
            self.cloud.await_status(each)

    def boot(self, user, name, metadata=None):
        made = self.cloud.boot(
            user,
            name,
            None,
            guest_image.IDLE,
            zone=fake_hosts.ZONE,
            metadata=metadata,
        )
        self._booted.append(made)
        return made

    def clear(self):
        """Delete all, until none comes back."""
        left = [each for each in self._booted if self.cloud.exists(each)]
        self.cloud.delete(left)
        self._booted.clear()
        self.servers.clear()

    def ask(self, count):
        """Ask for normal servers, and wait until room is made for all."""
        asked = [self.boot(OWNER, f'needs-{n}') for n in range(count)]
        filling.await_told(
            self.cloud, asked, 'reason', ['room_is_made'] * count
        )
        return asked

    def told(self):
        """When servers leave by their metadata, seconds of the epoch."""
        found = {}
        for each in self.servers:
            said = self.metadata(each).get(leaving.LEAVES_AT)
            if said:
                found[each] = dt.datetime.fromisoformat(said).timestamp()
        return found

    def metadata(self, server):
        path = f'/servers/{server}'
        answer = self.cloud.admin.ask('GET', 'compute', path)
        if answer.status != 200:
            return {}
        return answer.body['server']['metadata']

    def status(self, server):
        """Empty of one that is gone."""
        path = f'/servers/{server}'
        answer = self.cloud.admin.ask('GET', 'compute', path)
        return answer.body['server']['status'] if answer.status == 200 else ''

    def await_status(self, servers, status):
        watching.eventually(
            lambda: {self.status(each) for each in servers} == {status},
            lambda: [self.cloud.request(each) for each in servers],
        )

    def await_told(self, count):
        """Wait until so many were told, and no more."""
        watching.eventually(lambda: len(self.told()) >= count, self.told)
        told = self.told()
        assert len(told) == count, told
        return told

    def used(self):
        """VCPUs of hosts that Placement has allocated, by name."""
        path = '/resource_providers'
        listed = self.cloud.admin.get('placement', path)['resource_providers']
        return {
            each['name']: self.cloud.admin.get(
                'placement', f'{path}/{each["uuid"]}/usages'
            )['usages'].get('VCPU', 0)
            for each in listed
            if each['name'] in self._hosts
        }


@pytest.fixture(scope='module')
def hosts(cloud, queue):
    with fake_hosts.running(cloud, HOSTS, VCPUS) as names:
        try:
            yield Room(cloud, queue, names)
        finally:
            queue.restart(lease='1')
            cloud.capacity()
            queue.set()


@pytest.fixture
def room(hosts):
    try:
        yield hosts
    finally:
        hosts.clear()


class Deaths:
    """The service dies at a write, is started anew, and lives longer."""

    def __init__(self, cloud):
        self.count = 0
        self._cloud, self._orders = cloud, cloud.queue.striking()
        self._writes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def begin(self):
        """Die soon from now on."""
        self._writes = FIRST_WRITES
        if not self._thread.ident:
            self._thread.start()

    def end(self):
        self._ended.set()
        if self._thread.ident:
            self._thread.join()
        self._orders.arm(SLOT, striking.Blow(0))
        self._cloud.queue.harmless()

    def _work(self):
        queue = self._cloud.queue
        while not self._ended.is_set():
            when = striking.WHEN[self.count % len(striking.WHEN)]
            self._orders.arm(SLOT, striking.Blow(self._writes, 0, when))
            self._writes += LATER_WRITES
            while queue.runs(waiting.SERVICE):
                if self._ended.wait(0.1):
                    return
            self.count += 1
            queue.start(waiting.SERVICE)


@pytest.fixture
def deaths(cloud, hosts):
    made = Deaths(cloud)
    try:
        yield made
    finally:
        made.end()


def test_who_is_over_their_share_is_told_shelved_and_comes_back(room, deaths):
    room.start(room_actions='shelve')
    room.fill()
    deaths.begin()
    begun = time.time()
    asked = room.ask(2)
    told = room.await_told(2)
    assert {room.servers[each] for each in told} == {RICH}
    assert min(told.values()) - begun >= leaving.LEAST_NOTICE_S - 1
    assert room.cloud.request(next(iter(told)))['leaving'][0]['reason'] == (
        'makes_room'
    )
    watching.eventually(lambda: time.time() >= min(told.values()) - 1)
    deaths.begin()
    room.await_status(asked, 'ACTIVE')
    assert time.time() >= min(told.values())
    room.await_status(told, 'SHELVED_OFFLOADED')
    stay = room.servers.keys() - told.keys()
    assert {room.status(each) for each in stay} == {'ACTIVE'}
    assert room.told().keys() == told.keys()
    assert room.used() == dict.fromkeys(room.used(), VCPUS)
    # There is room again: they come back by themselves.
    deaths.begin()
    room.cloud.delete(asked)
    room.await_status(told, 'ACTIVE')
    watching.eventually(lambda: not room.told(), room.told)
    assert room.used() == dict.fromkeys(room.used(), VCPUS)
    assert deaths.count >= LEAST_DEATHS


def test_owners_delete_and_lock_who_is_to_leave(room):
    room.start(room_actions='stop,delete')
    room.fill()
    asked = room.ask(2)
    first, second = room.await_told(2)
    at = room.told()[second]
    alice = room.cloud.users[RICH]
    lock = {'lock': {'locked_reason': 'mine'}}
    alice.post('compute', f'/servers/{second}/action', lock)
    alice.delete('compute', f'/servers/{first}')
    # The room of the one is free before the notice of the other is over.
    watching.eventually(
        lambda: 'ACTIVE' in {room.status(each) for each in asked},
        lambda: [room.cloud.request(each) for each in asked],
    )
    assert time.time() < at
    room.await_status(asked, 'ACTIVE')
    assert time.time() >= at
    assert room.status(second) == ''
    left = [each for each in room.servers if room.status(each)]
    assert {room.status(each) for each in left} == {'ACTIVE'}
    assert len(left) == len(FULL) - 2
    assert not room.told()


def test_who_needs_room_no_more_lets_others_stay(room):
    room.start(room_actions='shelve')
    room.fill()
    asked = room.ask(1)
    room.await_told(1)
    room.cloud.delete(asked)
    watching.eventually(lambda: not room.told(), room.told)
    assert {room.status(each) for each in room.servers} == {'ACTIVE'}
