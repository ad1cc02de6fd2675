# SPDX-License-Identifier: Apache-2.0

"""What a cycle of the queue costs: all of it, and each part.

Clouds up to 1,000 full hosts with 20 servers each, in which up to 10,000
requests wait, by shares; without accounts, and with 2,210 that have budgets,
windows, ceilings and quotas. A cycle every ten seconds, before which a server
ends on one of a hundred hosts, so that others start. One cycle a minute is
whole, and charges what users have; those between plan for who is ahead.

The store is SQLite. Placement, Nova and Keystone are a fake that answers over
HTTP, in a process of its own: only the CPU time of the service is counted. As
Nova does, it lists servers that no host has each time, and others when they
changed. What was started runs before the next cycle. Run alone on the
machine::

    PYTHONPATH=. python benchmarks/queue_cycle.py --out FILE
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
import functools
import json
import math
import multiprocessing
import pathlib
import random
import tempfile
import time
from typing import Any

import fairqueue
from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
import numpy as np
import recorded

from nova_fairness.cluster import accounts as accounts_module
from nova_fairness.cluster import at_risk
from nova_fairness.cluster import charging
from nova_fairness.cluster import chores
from nova_fairness.cluster import clients
from nova_fairness.cluster import election
from nova_fairness.cluster import ends
from nova_fairness.cluster import execute
from nova_fairness.cluster import freeing
from nova_fairness.cluster import idling
from nova_fairness.cluster import images
from nova_fairness.cluster import leaving
from nova_fairness.cluster import making
from nova_fairness.cluster import placement
from nova_fairness.cluster import planning
from nova_fairness.cluster import retiring
from nova_fairness.cluster import servers
from nova_fairness.cluster import service
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster import tokens
from nova_fairness.cluster import trading
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import budgets
from tests.fixtures import fake_cloud

SERVERS = 20
CHANGED = 30
"""Servers that changed since the last look."""

VCPUS = 128

ORDER = orders.FairTree()
"""What the service is delivered with."""

MINUTES = 3
BEGIN = 1.8e9
"""A Friday morning, seconds of the epoch."""

PAUSE_S = 10.0
PARTS = ('store', 'look', 'ledger', 'plan', 'starts')
_FLAVOR = {'vcpus': 2, 'ram': 2048, 'disk': 10, 'ephemeral': 0}
_REST = 'x' * 1400
"""What else Nova says of a server: 1.8 kB altogether."""

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


class Served:
    """A cloud that is served by another process.

    :ivar ask: makes a client of it.
    """

    def __init__(self, cloud: FakeLargeCloud) -> None:
        context = multiprocessing.get_context('fork')
        self._pipe, its = context.Pipe()
        self._process = context.Process(target=_serve, args=(cloud, its))

    def __enter__(self) -> 'Served':
        self._process.start()
        url = f'http://127.0.0.1:{self._pipe.recv()}'
        plain = session.Session(noauth.NoAuth(url))
        self.api = adapter.Adapter(plain, endpoint_override=url)
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join()

    def go_on(
        self, ended: int, started: list[tuple[str, str, dict[str, int]]]
    ) -> None:
        """Let so many servers end, and others run: which, where, and what."""
        self._pipe.send((ended, started))
        self._pipe.recv()


class Conductor(execute.Sender):
    """Takes all that is sent."""

    def connect(self) -> None:
        """Be ready."""

    def send(self, cast: cast_module.Cast) -> None:
        """Take it."""

    def is_drained(self) -> bool:
        """Have it all."""
        return True


@contextlib.contextmanager
def stored() -> Iterator[store_module.Store]:
    """A store that this process leads with the epoch 1."""
    with tempfile.TemporaryDirectory() as place:
        keys = pathlib.Path(place) / 'keys'
        sealing.add_key(keys)
        engine = database.connect(f'sqlite:///{place}/s.sqlite')
        schema.upgrade(engine)
        yield store_module.Store(engine, sealing.read(keys))


def asked(waiting: int, flavors: int) -> tuple[request.Request, ...]:
    """Requests as they come from Nova: by UUIDs, up to the begin."""
    named = fake_cloud.name_uuid
    return tuple(
        dataclasses.replace(
            each,
            uuid=named(each.servers[0]),
            servers=tuple(map(named, each.servers)),
            asked_at=BEGIN - waiting + each.asked_at,
        )
        for each in fairqueue.requests(
            waiting, random.Random(waiting), flavors
        )
    )


def keep(store: store_module.Store, each: request.Request) -> None:
    """A request whose message came."""
    spec = {
        'nova_object.name': 'RequestSpec',
        'nova_object.version': '1.0',
        'nova_object.data': {'ignore_hosts': None, 'project_id': each.project},
    }
    message = {
        'method': each.origin.value,
        'version': '1.17',
        '_context_auth_token': 'a-token',
        'args': {'request_specs': [spec] * len(each.servers)},
    }
    body = {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    cast = cast_module.Cast(
        f'cast-{each.uuid}',
        each.origin.value,
        each.asked_at,
        'conductor',
        json.dumps(body).encode(),
        {},
    )
    store.hold(cast)
    store.add(each, cast.uuid, each.asked_at)


def usual_chores(
    store: store_module.Store, nova: servers.Nova, leaves: leaving.Leaving
) -> chores.Chores:
    """What is done beside requests if nothing is configured."""
    return chores.Chores(
        idling.Idling(store.leaves, leaves, lambda _: {}, idling.Rules()),
        at_risk.Warnings(store, nova, at_risk.Rules()),
        lambda *_: [],
        retiring.Retiring(store.leaves, nova, leaves, retiring.Rules()),
        freeing.Freeing(store.leaves, leaves, freeing.Rules()),
    )


class Cycles:
    """A service whose cycles are measured, part by part.

    :param served: its cloud.
    :param store: its store.
    :param limits: of projects.
    :param accounts: of the share tree.

    :ivar now: seconds of the epoch.
    """

    def __init__(
        self,
        served: Served,
        store: store_module.Store,
        limits: dict[str, cluster.Limits],
        accounts: tuple[cluster.Account, ...],
    ) -> None:
        self.now = BEGIN
        self._spent_s: dict[str, float] = collections.defaultdict(float)
        clock = lambda: self.now  # noqa: E731
        rooms = placement.Placement(clients.placement(served.api))
        nova = servers.Nova(clients.nova(served.api))
        present = accounts_module.Accounts(store, lambda: accounts)
        reader = snapshot_module.Reader(rooms, nova, limits, present.present)
        ledger = charging.Charging(
            store,
            reader,
            7 * 86400.0,
            budgets.Terms(),
            trading.Trading(store, 1.0, 30 * 86400.0),
        )
        patience = leaving.Patience()
        leaves = leaving.Leaving(
            store.leaves,
            nova,
            rooms,
            images.Images(clients.glance(served.api)),
            clock,
            patience,
        )
        known = tokens.Tokens(clients.keystone(served.api))
        executor = execute.Executor(
            store, rooms, nova, known, Conductor(), clock
        )
        self.service = service.Service(
            store,
            election.Election(store, 'benchmark', 1e9, clock, clock),
            present,
            reader,
            ledger,
            executor,
            nova,
            ends.Ends(store.leaves, leaves, ends.Rules(), patience.notice_s),
            usual_chores(store, nova, leaves),
            leaves,
            making.Making(store, nova, leaves, clock, making.Rules()),
            functools.partial(planner.plan, order=ORDER),
            clock,
            time.monotonic,
            service.Rules(),
        )
        self._time_parts(store, reader, ledger, executor)

    def _time_parts(
        self,
        store: store_module.Store,
        reader: snapshot_module.Reader,
        ledger: charging.Charging,
        executor: execute.Executor,
    ) -> None:
        for name, owner, method in (
            ('store', store, 'requests'),
            ('look', reader, 'read'),
            ('ledger', ledger, 'charge'),
            ('plan', self.service._planning, 'plan'),  # noqa: SLF001
            ('starts', executor, 'carry_out'),
        ):
            setattr(owner, method, self._timed(name, getattr(owner, method)))

    def _timed(
        self, name: str, call: Callable[..., Any]
    ) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            begun_s = time.process_time()
            try:
                return call(*given, **named)
            finally:
                self._spent_s[name] += time.process_time() - begun_s

        return timed

    def started(self) -> list[tuple[str, str, dict[str, int]]]:
        """Servers that the last cycle started: which, where, and what."""
        last = self.service.last()
        known = {each.uuid: each for each in last.snapshot.requests}
        return [
            (server, host, dict(known[each.request].demand.amounts))
            for each in last.plan.actions
            if each.verb is cluster.Verb.START
            for server, host in zip(
                known[each.request].servers, each.hosts, strict=True
            )
        ]

    def measured(self) -> dict[str, float]:
        """CPU seconds of a cycle and of its parts, and how many start."""
        self._spent_s.clear()
        begun_s = time.process_time()
        self.service.cycle()
        cycle_s = time.process_time() - begun_s
        # What a pause does for cycles; it makes no estimates in no time.
        self.service.estimate(0.0)
        parts = {name: self._spent_s[name] for name in PARTS}
        started = sum(
            each.verb is cluster.Verb.START
            for each in self.service.last().plan.actions
        )
        return {**parts, 'cycle': cycle_s, 'started': started}


def medians(measured: list[dict[str, float]]) -> dict[str, float]:
    """Of each part; what is in none is the rest.

    What the service works out itself, without asking Nova and Placement and
    without starts, is its own.
    """
    found = {
        f'{name}_cpu_s': round(
            float(np.median([each[name] for each in measured])), 3
        )
        for name in (*PARTS, 'cycle')
    }
    without = [each['cycle'] - each['starts'] for each in measured]
    found['without_starts_cpu_s'] = round(float(np.median(without)), 3)
    own = [e['cycle'] - e['starts'] - e['look'] for e in measured]
    found['own_cpu_s'] = round(float(np.median(own)), 3)
    found['started'] = int(np.median([each['started'] for each in measured]))
    return found


def measure(
    waiting: int, hosts: int, flavors: int, is_bounded: bool
) -> dict[str, Any]:
    """Some minutes of cycles: medians of whole ones and of those between."""
    requests = asked(waiting, flavors)
    limits = {
        f'p{n}': cluster.Limits({'VCPU': 10}, {'VCPU': 100_000})
        for n in range(0, fairqueue.PROJECTS, 2)
    }
    accounts = fairqueue.accounts(hosts) if is_bounded else ()
    spent: tuple[list[dict[str, float]], ...] = ([], [])
    with Served(FakeLargeCloud(hosts, requests)) as served, stored() as store:
        for each in requests:
            keep(store, each)
        cycles = Cycles(served, store, limits, accounts)
        # The first minute reads everything.
        started: list[tuple[str, str, dict[str, int]]] = []
        for number in range(round(planning.EVERY_S / PAUSE_S) * MINUTES + 1):
            served.go_on(max(hosts // 100, 1), started)
            cycles.now = BEGIN + PAUSE_S * number
            found = cycles.measured()
            started = cycles.started()
            is_whole = (PAUSE_S * number) % planning.EVERY_S == 0
            if PAUSE_S * number >= planning.EVERY_S:
                spent[is_whole].append(found)
    found = {
        'requests': waiting,
        'hosts': hosts,
        'whole': medians(spent[True]),
        'between': medians(spent[False]),
    }
    print(found, flush=True)
    return found


def measure_all(flavors: int, is_bounded: bool) -> dict[str, Any]:
    """Measure every size; what cycles cost, and how that grows."""
    found = [measure(*size, flavors, is_bounded) for size in fairqueue.SIZES]
    logs = [
        (
            math.log(each['requests']),
            math.log(each['whole']['without_starts_cpu_s']),
        )
        for each in found
    ]
    slope = np.polyfit(*zip(*logs, strict=True), 1)[0]
    return {
        'bounded': is_bounded,
        'exponent': round(float(slope), 2),
        'cycles': found,
    }


def main() -> None:
    """Measure without accounts and with them."""
    parser = recorded.parser(__doc__)
    parser.add_argument('--flavors', type=int, default=50)
    given = parser.parse_args()
    clouds = [measure_all(given.flavors, each) for each in (False, True)]
    recorded.write(given.out, {'flavors': given.flavors, 'clouds': clouds})


if __name__ == '__main__':
    main()
