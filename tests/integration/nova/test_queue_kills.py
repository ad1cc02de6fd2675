# SPDX-License-Identifier: Apache-2.0

"""Relay, service, broker and database of the real cloud are killed.

What came of it is in ``build/kills-nova.json`` afterwards.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import sys
import threading

import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness import exception
from nova_fairness.relay import topology
from tests.fixtures import write_signals
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import filling
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.filling',
)

PROGRAMS = (waiting.RELAY, waiting.SERVICE)
VICTIMS = {waiting.RELAY: 7, waiting.SERVICE: 9, 'broker': 2, 'database': 2}
"""How often each dies."""

MOST_WRITES = {waiting.RELAY: 12, waiting.SERVICE: 30}
REQUESTS = 2
SILENT_S = 300
"""Hosts are silent for a while when Nova's broker or database has died."""

DELETED_S = 60
"""Nova may lose with its broker what a host was told: it is told again."""

TOLD = environment.TOP / 'build/kills-nova.json'
TEST = str(pathlib.Path(__file__).relative_to(environment.TOP))
_LISTENS = """
import sys
from nova_fairness.relay import link, topology
found = link.Link(sys.argv[1], topology.Places(), declares=False)
sys.exit(not all(found.taken(queue) for queue in sys.argv[2:]))
"""


class Watchdog:
    """Starts what died, as the units of systemd do.

    :ivar deaths: how often each died.
    """

    def __init__(self, cloud):
        self.deaths = collections.Counter()
        self._cloud = cloud
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _work(self):
        while not self._ended.wait(0.2):
            for program in PROGRAMS:
                if not self._cloud.queue.runs(program):
                    self._cloud.queue.start(program)
                    self.deaths[program] += 1
            for server in ('broker', 'database'):
                if not self._cloud.runs(server):
                    # First: nobody must kill again who is just coming back.
                    self.deaths[server] += 1
                    self._cloud.revive(server)


@pytest.fixture
def patient(cloud, queue):
    """A Nova that takes no silent host for dead.

    It would send them nothing, and delete their servers without them.
    """
    cloud.plane.set({'DEFAULT': {'service_down_time': str(SILENT_S)}})
    try:
        yield
    finally:
        cloud.plane.set({})
        cloud.await_up()


@pytest.fixture
def orders(cloud, patient, full, queue):
    """Relay and service that strike at a write, and take over soon."""

    def start():
        for program in PROGRAMS:
            queue.kill(program)
            queue.start(program)

    made = queue.use_write_signals()
    queue.set(lease='3', doubt='60')
    start()
    try:
        yield made
    finally:
        queue.harmless()
        queue.set()
        start()
        cloud.capacity()


def arm(cloud, orders, chance, victim):
    """Have somebody die at a write of the relay or the service."""
    striker = victim if victim in PROGRAMS else chance.choice(PROGRAMS)
    blow = write_signals.WriteSignal(
        chance.randint(1, MOST_WRITES[striker]),
        0 if victim in PROGRAMS else -cloud.group_of(victim),
        chance.choice(write_signals.WHEN),
    )
    orders.arm(waiting.SLOTS[striker], blow)


def strike(cloud, orders, victim):
    """Kill one now who did not die at a write."""
    for slot in waiting.SLOTS.values():
        orders.arm(slot, write_signals.WriteSignal(0))
    if victim in PROGRAMS:
        cloud.queue.slay(victim)
    else:
        os.killpg(cloud.group_of(victim), signal.SIGKILL)


def takes(cloud, *queues):
    """Whether somebody took all that is in some queues, and listens."""
    url = places.broker_url().replace('rabbit:', 'amqp:', 1) + '/'
    asked = [sys.executable, '-c', _LISTENS, url, *queues]
    with contextlib.suppress(exception.LabError):
        processes.run(cloud.controller.command(asked))
        return True
    return False


def status(cloud, server):
    answer = cloud.admin.ask('GET', 'compute', f'/servers/{server}')
    return answer.body['server']['status'] if answer.status == 200 else ''


def delete(cloud, servers):
    """Delete servers; how often a host had to be told again."""
    left = list(servers)
    for again in range(5):
        for each in left:
            cloud.admin.ask('DELETE', 'compute', f'/servers/{each}')
        processes.wait_until(
            lambda: not any(map(cloud.exists, servers)), DELETED_S, 0.2
        )
        left = [each for each in servers if cloud.exists(each)]
        if not left:
            return again
        print([cloud.show(each) for each in left], flush=True)
    raise AssertionError(f'{left} are not deleted')


def is_told(cloud, servers, states):
    """Whether the queue says that all requests are in one of some states."""
    return {cloud.request(each).get('state') for each in servers} <= states


def one_kill(cloud, orders, chance, victim, dog, running):
    """Ask for servers, kill, make room.

    :returns: requests, whether one was withdrawn, whether somebody died at a
        write, and how often hosts had to be told again to delete.
    """
    before = dog.deaths[victim]
    arm(cloud, orders, chance, victim)
    asked = filling.ask(cloud, f'{victim}-{before}', REQUESTS)
    left, struck = list(asked), False
    if victim not in PROGRAMS:
        # Nova itself loses what it is doing when it loses one of these.
        watching.eventually(lambda: is_told(cloud, asked, {'waiting'}))
        struck = dog.deaths[victim] > before or not cloud.runs(victim)
        if not struck:
            strike(cloud, orders, victim)
        watching.eventually(lambda: dog.deaths[victim] > before)
        nodes = [f'compute.{name}' for name in cloud.nodes]
        watching.eventually(
            lambda: takes(cloud, 'conductor', 'scheduler', *nodes)
        )
        watching.eventually(lambda: is_told(cloud, asked, {'waiting'}))
    if chance.random() < 0.3:
        delete(cloud, [left.pop()])
    running.extend(left)
    again = delete(cloud, [running.popleft() for _ in left])
    watching.eventually(
        lambda: {status(cloud, each) for each in left} == {'ACTIVE'},
        lambda: [cloud.request(each) for each in left],
    )
    if victim in PROGRAMS:
        struck = dog.deaths[victim] > before
        if not struck:
            strike(cloud, orders, victim)
        watching.eventually(lambda: dog.deaths[victim] > before)
    return asked, len(left) < len(asked), struck, again


def sent(cloud):
    """How often each request was sent, but for those that Nova lacked."""
    text = cloud.controller.log(waiting.SERVICE).read_text(errors='replace')
    found = collections.Counter(re.findall(r'request (\S+) was sent', text))
    found.subtract(re.findall(r'request (\S+): Nova does not have it', text))
    return found


def allocated(cloud):
    """VCPUs that Placement says are taken."""
    path = '/resource_providers'
    listed = cloud.admin.get('placement', path)['resource_providers']
    usages = [
        cloud.admin.get('placement', f'{path}/{each["uuid"]}/usages')
        for each in listed
    ]
    return sum(each['usages'].get('VCPU', 0) for each in usages)


def left_over(cloud, running, asked):
    """Sentences on what is not as it should be."""
    nodes = cloud.nodes.values()
    guests = {uuid for node in nodes for uuid in node.domains().values()}
    listed = cloud.admin.get('compute', '/servers?all_tenants=1')['servers']
    there, names = {each['id'] for each in listed}, topology.Places()
    wanted = {each: 'active' if each in running else 'ended' for each in asked}
    states = {each: cloud.request(each).get('state') for each in asked}
    more = allocated(cloud) - len(there)
    return [
        *([f'{more} VCPUs are allocated for nothing'] if more else []),
        *(f'{each} has no server' for each in guests - there),
        *(f'{each} has no guest' for each in there - guests),
        *(f'{each} is lost' for each in {*running} - there),
        *(
            f'{each} is {states[each]}, not {state}'
            for each, state in wanted.items()
            if states[each] != state
        ),
        *(
            f'{each} was sent twice'
            for each, n in sent(cloud).items()
            if n > 1
        ),
        *(
            f'{each} is not taken'
            for each in (names.conductor, names.held)
            if not takes(cloud, each)
        ),
    ]


def record(cloud, dog, running, asked, gone, struck, again):
    """Write what came of the kills, and say what is not as it should be."""
    wrong = left_over(cloud, running, asked)
    found = {
        'test': TEST,
        'killed': dict(dog.deaths),
        'at_a_write': struck,
        'requests': len(asked),
        'withdrawn': gone,
        'deletions_asked_again': again,
        'not_as_it_should_be': wrong,
    }
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(found, indent=1) + '\n')
    return wrong


def test_kills_lose_duplicate_and_leave_nothing(cloud, full, orders):
    chance = random.Random(1)
    victims = [name for name, n in VICTIMS.items() for _ in range(n)]
    chance.shuffle(victims)
    running, asked = collections.deque(full), []
    gone = struck = again = 0
    try:
        with Watchdog(cloud) as dog:
            for victim in victims:
                new, is_gone, at_write, told = one_kill(
                    cloud, orders, chance, victim, dog, running
                )
                asked += new
                gone += is_gone
                struck += at_write
                again += told
                print(victim, at_write, told, dict(dog.deaths), flush=True)
            watching.eventually(
                lambda: (
                    not record(cloud, dog, running, asked, gone, struck, again)
                ),
                TOLD.read_text,
            )
        assert all(dog.deaths[name] >= n for name, n in VICTIMS.items())
        assert struck > len(victims) / 2
    finally:
        cloud.delete([each for each in running if cloud.exists(each)])
