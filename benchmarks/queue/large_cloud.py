# SPDX-License-Identifier: Apache-2.0

"""A full cloud as large as it may be, which another process serves."""

import collections
import multiprocessing
import random
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session

from benchmarks.queue import fairqueue
from nova_fairness.cluster.openstack import clients
from nova_fairness.model import request
from tests.fixtures import fake_cloud

SERVERS = 20
CHANGED = 30
"""Servers that changed since the last look."""

VCPUS = 128
_FLAVOR = {'vcpus': 2, 'ram': 2048, 'disk': 10, 'ephemeral': 0}
_REST = 'x' * 1400
"""Stands for the other fields of a server in Nova: 1.8 kB altogether."""

_BEGAN = '2026-01-01T00:00:00.000000'


class FakeLargeCloud(fake_cloud.FakeCloud):
    """One that lists what changed, and adds up as fast as a database."""

    def __init__(self, hosts: int, requests: tuple[request.Request, ...]):
        super().__init__()
        self._sums: dict[tuple[str, str], int] = collections.Counter()
        self._usages: dict[tuple[str, str], dict[str, int]] = {}
        self._users: dict[str, str] = {}
        self._built: list[str] = []
        self._chance = chance = random.Random(hosts)
        for host in range(hosts):
            self._add_large(host, chance)
            left = VCPUS
            for number in range(SERVERS):
                most = left - (SERVERS - number - 1)
                vcpus = min(1 + chance.randrange(11), most)
                vcpus = left if number == SERVERS - 1 else vcpus
                self._add_running(f's{host}-{number}', host, chance, vcpus)
                left -= vcpus
        for each in requests:
            for server in each.servers:
                self.add_server(
                    server, each.project, each.user, flavor=_FLAVOR, more=_REST
                )
            if each.group:
                self.groups[each.group.uuid] = list(each.servers)

    def _add_large(self, host: int, chance: random.Random) -> None:
        """A host that requests of :mod:`fairqueue` can start on."""
        name = f'host-{host:05}'
        root = self.add_host(name, VCPUS, 512_000, zone=f'z{host % 3}')
        provider = self.providers[root]
        more = {'DISK_GB': 4000, **({} if host % 10 else {'CUSTOM_GPU': 4})}
        provider['inventories'] |= {
            each: {
                **provider['inventories']['VCPU'],
                'total': total,
                'max_unit': total,
            }
            for each, total in more.items()
        }
        if chance.random() < 0.3:
            provider['traits'].append('T1')

    def end(self, count: int) -> None:
        """Let so many servers end that run."""
        # What is kept for those that start has no server.
        run = sorted(self.allocations.keys() & self.servers.keys())
        for server in self._chance.sample(run, count):
            self.remove(server)

    def start(self, server: str, host: str, amounts: dict[str, int]) -> None:
        """Do what Nova does with what it was given."""
        found = self.servers[server]
        found['OS-SRV-USG:launched_at'] = _BEGAN
        self._users[server] = found['user_id']
        self.build(server, host, amounts)
        self._built = [*self._built[-CHANGED:], server]

    def write(self, consumer, parts, project):
        self._count(consumer, -1)
        super().write(consumer, parts, project)
        self._count(consumer, 1)

    def _allocate(self, consumer, body):
        self._users[consumer] = body['user_id']
        return super()._allocate(consumer, body)

    def _count(self, consumer: str, sign: int) -> None:
        project = self.owners.get(consumer)
        for provider, amounts in self.allocations.get(consumer, {}).items():
            for name, amount in amounts.items():
                self._sums[provider, name] += sign * amount
                for whose in ('', self._users[consumer]):
                    use = self._usages.setdefault((project, whose), {})
                    use[name] = use.get(name, 0) + sign * amount

    def _get_usages(self, place, query, body):
        whose = query['project_id'], query.get('user_id', '')
        return {'usages': self._usages.get(whose, {})}

    def used(self, provider: str, name: str) -> int:
        return self._sums[provider, name]

    def _add_running(
        self, name: str, host: int, chance: random.Random, vcpus: int
    ):
        project = f'p{chance.randrange(fairqueue.PROJECTS)}'
        flavor = {
            'vcpus': vcpus,
            'ram': vcpus * 2048,
            'disk': 0,
            'ephemeral': 0,
        }
        server = fake_cloud.name_uuid(name)
        user = f'u{chance.randrange(fairqueue.USERS)}'
        self.add_server(server, project, user, flavor=flavor, more=_REST)
        self._users[server] = user
        self.servers[server]['OS-SRV-USG:launched_at'] = _BEGAN
        amounts = {'VCPU': vcpus, 'MEMORY_MB': vcpus * 2048}
        self.build(server, f'host-{host:05}', amounts)

    def _get_servers(self, place, query, body):
        if place != ['detail']:
            return super()._get_servers(place, query, body)
        found = list(self.servers.values())
        if 'changes-since' in query:
            waiting = [e for e in found if e['status'] == 'BUILD']
            built = [self.servers[e] for e in self._built if e in self.servers]
            gone = self.deleted[-CHANGED:]
            found = [*found[:CHANGED], *built, *waiting, *gone]
        found = fake_cloud.of_status(found, query)
        return {'servers': fake_cloud.page(found, query)}


def _serve(cloud: FakeLargeCloud, pipe: Any) -> None:
    with fake_cloud.serving(cloud) as port:
        pipe.send(port)
        while asked := pipe.recv():
            ended, started = asked
            with cloud.lock:
                for each in started:
                    cloud.start(*each)
                cloud.end(ended)
            pipe.send(ended)


class ServedCloud:
    """A cloud that is served by another process.

    :ivar ask: makes a client of it.
    """

    def __init__(self, cloud: FakeLargeCloud) -> None:
        context = multiprocessing.get_context('fork')
        self._pipe, its = context.Pipe()
        self._process = context.Process(target=_serve, args=(cloud, its))

    def __enter__(self) -> 'ServedCloud':
        self._process.start()
        url = f'http://127.0.0.1:{self._pipe.recv()}'
        plain = clients.with_cached_environment(
            session.Session(noauth.NoAuth(url))
        )
        self.api = adapter.Adapter(plain, endpoint_override=url)
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join()

    def clients(self) -> clients.CloudClients:
        """Clients of its services."""
        return clients.CloudClients(
            clients.placement_api(self.api),
            clients.nova_api(self.api),
            clients.keystone_api(self.api),
            clients.glance_api(self.api),
        )

    def replace_servers(
        self, ended: int, started: list[tuple[str, str, dict[str, int]]]
    ) -> None:
        """Let so many servers end, and others run: which, where, and what."""
        self._pipe.send((ended, started))
        self._pipe.recv()
