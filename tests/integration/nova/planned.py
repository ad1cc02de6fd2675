# SPDX-License-Identifier: Apache-2.0

"""Migration plans as an administrator asks for them; a plugin of pytest.

Who uses :func:`lying` has a fixture ``fakes``: names of hosts of Nova's fake
driver, whose servers cost nothing.
"""

import contextlib
import json
import re
import time

import pytest

from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest
from tests.integration.nova import filling
from tests.integration.nova import watching

APPROVE = {'mode': 'approve', 'goals': '', 'hold': '0'}
AUTO = {**APPROVE, 'mode': 'auto', 'rest': '0'}
OWNER = 'alice'
URL = '/fairness/plans'
LOOKED_AT = 'nova_fairness_plan_snapshot_timestamp_seconds'
SEEN_S = 2.0
"""The queue, which looks first, looked each second."""

TOLD = environment.TOP / 'build/plans-nova.json'
"""What came of plans in a real cloud."""


class Plans:
    """Plans as an administrator asks for them."""

    def __init__(self, cloud, queue):
        self.cloud, self._queue = cloud, queue

    def start(self, options):
        self._queue.restart(options, lease='10', hosts_interval='1')
        self.cloud.capacity()
        watching.eventually(lambda: self._ask('GET', URL).status == 200)

    def _ask(self, method, path, body=None):
        return self.cloud.admin.ask(method, 'compute', path, body)

    def _asked(self, method, path, body=None):
        """Ask until the service, which may be dead, answers."""
        found = []

        def answers():
            found.append(self._ask(method, path, body))
            return found[-1].status in (200, 202)

        watching.eventually(answers, lambda: found[-1])
        return found[-1].body

    def empty(self, host):
        return self._asked('POST', URL, {'empty': host})['plan']['uuid']

    def approve(self, uuid):
        body = {'approve': None}
        return self._asked('POST', f'{URL}/{uuid}/action', body)

    def stop(self, uuid):
        """End a plan, so that its host is open again."""
        return self._asked('POST', f'{URL}/{uuid}/action', {'stop': None})

    def refused(self, host):
        """What is said where nothing on a host can move."""
        answer = self._ask('POST', URL, {'empty': host})
        assert answer.status == 409, answer
        return str(answer.body)

    def all(self):
        return self._asked('GET', URL)['plans']

    def new(self, known):
        """UUIDs of plans but those that are known, the newest first."""
        return [
            each['uuid'] for each in self.all() if each['uuid'] not in known
        ]

    def await_new(self, known):
        """The UUID of the only plan that is new, once there is one."""
        watching.eventually(lambda: self.new(known), self._queue.said)
        [uuid] = self.new(known)
        return uuid

    def show(self, uuid):
        return self._asked('GET', f'{URL}/{uuid}')['plan']

    def ended(self, uuid):
        """The plan once what it won is known."""
        watching.eventually(
            lambda: self.show(uuid)['won'] is not None,
            lambda: (self.show(uuid), self._queue.said()),
        )
        return self.show(uuid)

    def looked_at(self):
        """When the service looked at the cloud last; 0 if it has not yet."""
        connection = rest.Connection(
            self.cloud.controller, places.PORTS['queue']
        )
        try:
            connection.request('GET', '/metrics')
            text = connection.getresponse().read().decode()
        except OSError:
            return 0.0
        finally:
            connection.close()
        found = re.search(rf'^{LOOKED_AT} (\S+)$', text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def await_looks(self, count):
        """Wait for more than so many looks; tells how many there were."""
        looks = set()

        def looked():
            looks.add(self.looked_at())
            return len(looks) > count

        watching.eventually(looked, lambda: looks)
        return len(looks) - 1

    def await_look(self):
        """Wait until the service knows what is so now."""
        now = time.time()
        watching.eventually(lambda: self.looked_at() > now + SEEN_S)

    def over(self, uuid):
        """The plan once its moves have ended."""
        watching.eventually(
            lambda: self.show(uuid)['state'] in ('done', 'partial', 'failed'),
            lambda: (self.show(uuid), self._queue.said()),
        )
        return self.show(uuid)

    def targets(self, uuid):
        """New host of each server that moves, by its UUID."""
        return {
            each['server']: each['target'] for each in self.show(uuid)['moves']
        }

    def moves(self, uuid):
        """State and cause of each move, by UUID of the server."""
        return {
            each['server']: (each['state'], each['cause'])
            for each in self.show(uuid)['moves']
        }

    def host(self, server):
        return self.cloud.show(server)['OS-EXT-SRV-ATTR:host']

    def migrations(self, server):
        """How live migrations of a server ended, the oldest first."""
        path = f'/os-migrations?instance_uuid={server}'
        listed = self.cloud.admin.get('compute', path)['migrations']
        return [each['status'] for each in reversed(listed)]

    def service_of(self, host):
        path = f'/os-services?binary=nova-compute&host={host}'
        [found] = self.cloud.admin.get('compute', path)['services']
        return found

    def enable(self, host, status='enabled'):
        path = f'/os-services/{self.service_of(host)["id"]}'
        self.cloud.admin.put('compute', path, {'status': status})

    @contextlib.contextmanager
    def closed(self, *hosts):
        """Have hosts disabled."""
        for each in hosts:
            self.enable(each, 'disabled')
        try:
            yield
        finally:
            for each in hosts:
                self.enable(each)


@pytest.fixture
def plans(cloud, queue):
    try:
        yield Plans(cloud, queue)
    finally:
        queue.restart(lease='10')
        cloud.capacity()
        queue.set()


@pytest.fixture
def lying(cloud, plans, fakes):
    """Boots idle servers on hosts of the fake driver; deletes them.

    Nova lets none move to hosts with another hypervisor, which stand aside.
    """
    made = []

    def boot(host, count=1, flavor=filling.FLAVOR, wait=True, **more):
        about = {'zone': None if host else fake_hosts.ZONE, **more}
        new = [
            cloud.boot(
                OWNER,
                f'lies-{len(made) + n}',
                host,
                guest_image.IDLE,
                flavor,
                **about,
            )
            for n in range(count)
        ]
        made.extend(new)
        for each in new if wait else ():
            cloud.await_status(each)
        return new

    with plans.closed(*cloud.nodes):
        yield boot
        cloud.delete([each for each in made if cloud.exists(each)])


def record(test, title, **found):
    """Add what came of a test to what was told before.

    :param test: path of the test that tells it.
    """
    told = json.loads(TOLD.read_text()) if TOLD.exists() else {}
    told[title] = {'test': test, **found}
    TOLD.parent.mkdir(exist_ok=True)
    TOLD.write_text(json.dumps(told, indent=1) + '\n')
