# SPDX-License-Identifier: Apache-2.0

"""Hosts full of preemptible servers, and what is asked for.

Their hosts are those of Nova's fake driver, and cost nothing. A plugin of
pytest; whoever uses it has no other servers.
"""

import datetime as dt
import threading

import pytest

from nova_fairness.cluster.eviction import notice_channels
from tests.fixtures import write_signals
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import filling
from tests.integration.nova import watching

HOSTS, VCPUS, PROCESSES = 4, 4, 2
RICH, POOR, OWNER = 'alice', 'bob', 'carol'
FEW = 2
"""Servers of the user who is not over his share."""

PREEMPTIBLE = {'fairness:preemptible': 'true'}
BY = 'fairness:preemption_action'
ACTIONS = frozenset(
    {
        *('stop', 'start', 'suspend', 'resume', 'shelve', 'unshelve'),
        *('createImage', 'delete'),
    }
)
"""What Nova writes down that the service asks of a server, or its owner."""

OPTIONS = {
    'room_per_hour': '1000',
    'preemptible_marks': 'true',
    'room_patience': '1',
    'room_least_run': '1',
    'end_notice': '120',
    # As long as many starts of the service take.
    'end_patience': '300',
    'lease': '1',
    # What a dead service did not send waits no longer than this.
    'doubt': '60',
}
SLOT = waiting.SLOTS[waiting.SERVICE]
FIRST_WRITES, LATER_WRITES = 3, 7
"""At which the service dies first, and how much later each time."""


class Room:
    """Hosts that are full, and what is asked for.

    :ivar hosts: of the fake driver.
    :ivar servers: preemptible ones by UUID, with their owners.
    """

    def __init__(self, cloud, queue, hosts):
        self.cloud, self._queue, self.hosts = cloud, queue, hosts
        self.servers, self._booted = {}, []

    def start(self, **options):
        self._queue.restart(**{**OPTIONS, **options})
        self.cloud.capacity()

    def fill(self, *last):
        """Fill all hosts: a few are one user's, all others another's.

        :param last: metadata of those that are booted last, so that they
            lose least work; they are the other's.
        :returns: UUIDs of these.
        """
        count = HOSTS * VCPUS - len(last)
        owners = [POOR] * FEW + [RICH] * (count - FEW)
        self._lend([(user, {}) for user in owners])
        return self._lend([(RICH, each) for each in last])

    def _lend(self, those):
        made = []
        for user, metadata in those:
            name = f'{user}-lent-{len(self.servers)}'
            made.append(self.boot(user, name, {**PREEMPTIBLE, **metadata}))
            self.servers[made[-1]] = user
        for each in made:
            self.cloud.await_status(each)
        return made

    def boot(self, user, name, metadata=None, flavor=filling.FLAVOR):
        made = self.cloud.boot(
            user,
            name,
            None,
            guest_image.IDLE,
            flavor,
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

    def ask(self, count, flavor=filling.FLAVOR):
        """Ask for normal servers, and wait until room is made for all."""
        asked = [
            self.boot(OWNER, f'needs-{n}', {}, flavor) for n in range(count)
        ]
        filling.await_told(
            self.cloud, asked, 'reason', ['room_is_made'] * count
        )
        return asked

    def told(self):
        """When servers leave by their metadata, seconds of the epoch."""
        found = {}
        for each in self.servers:
            said = self.metadata(each).get(notice_channels.LEAVES_AT)
            if said:
                found[each] = seconds(said)
        return found

    def leave(self, server):
        """What the queue says of a server that is to leave, or left."""
        return self.cloud.request(server)['leaving'][0]

    def show(self, server):
        """What Nova says of it; nothing of one that is gone."""
        answer = self.cloud.admin.ask('GET', 'compute', f'/servers/{server}')
        return answer.body['server'] if answer.status == 200 else {}

    def metadata(self, server):
        return self.show(server).get('metadata', {})

    def status(self, server):
        """Empty of one that is gone."""
        return self.show(server).get('status', '')

    def host(self, server):
        return self.show(server)['OS-EXT-SRV-ATTR:host']

    def acted(self, server):
        """What Nova was asked to do with a server, the oldest first."""
        path = f'/servers/{server}/os-instance-actions'
        listed = self.cloud.admin.get('compute', path)['instanceActions']
        return [
            each['action']
            for each in reversed(listed)
            if each['action'] in ACTIONS
        ]

    def left_by(self, server):
        """The same without its way back, which begins at once."""
        return [each for each in self.acted(server) if each != 'unshelve']

    def untouched(self):
        """Those with whom nothing was done."""
        return {each for each in self.servers if not self.acted(each)}

    def await_status(self, servers, status):
        watching.eventually(
            lambda: {self.status(each) for each in servers} == {status},
            lambda: (
                [(self.status(each), self.acted(each)) for each in servers],
                [self.cloud.request(each) for each in servers],
            ),
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
            if each['name'] in self.hosts.names
        }

    def is_full(self):
        """Whether Placement has given all there is, and no more."""
        return self.used() == dict.fromkeys(self.hosts.names, VCPUS)


def seconds(said):
    """A moment as it is told, as seconds of the epoch."""
    return dt.datetime.fromisoformat(said).timestamp()


@pytest.fixture(scope='module')
def lent(cloud, queue):
    paths = [f'/os-quota-sets/{e.project}' for e in cloud.users.values()]
    limits = dict.fromkeys(('instances', 'cores', 'ram'), -1)
    for path in paths:
        cloud.admin.put('compute', path, {'quota_set': limits})
    with fake_hosts.running_fake_hosts(
        cloud, HOSTS, VCPUS, PROCESSES
    ) as hosts:
        try:
            yield Room(cloud, queue, hosts)
        finally:
            for path in paths:
                cloud.admin.delete('compute', path)
            queue.restart(lease='1')
            cloud.capacity()
            queue.set()


@pytest.fixture
def room(lent):
    try:
        yield lent
    finally:
        lent.clear()


class Deaths:
    """The service dies at a write, is started anew, and lives longer.

    :ivar count: of its deaths.
    """

    def __init__(self, cloud):
        self.count = 0
        self._cloud, self._orders = cloud, cloud.queue.use_write_signals()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def begin(self):
        """Die soon from now on."""
        self._thread.start()

    def end(self):
        self._ended.set()
        if self._thread.ident:
            self._thread.join()
        self._orders.arm(SLOT, write_signals.WriteSignal(0))
        self._cloud.queue.harmless()

    def blows(self):
        """Yield what it dies of, one after the other."""
        writes = FIRST_WRITES
        while True:
            when = write_signals.WHEN[self.count % len(write_signals.WHEN)]
            yield write_signals.WriteSignal(writes, 0, when)
            writes += LATER_WRITES

    def _work(self):
        queue = self._cloud.queue
        for blow in self.blows():
            self._orders.arm(SLOT, blow)
            if self.count:
                queue.start(waiting.SERVICE)
            while queue.runs(waiting.SERVICE):
                if self._ended.wait(0.1):
                    return
            self.count += 1
        queue.start(waiting.SERVICE)
