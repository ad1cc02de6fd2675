# SPDX-License-Identifier: Apache-2.0

"""What a cycle of the queue costs: a look at the cloud, the ledger, a plan.

Clouds up to 1,000 hosts with 20 servers each, in which up to 10,000 requests
wait, by shares; without accounts, and with 2,210 that have budgets, windows,
ceilings and quotas. The ledger is read in each cycle and charged once a
minute, which is every third here. Placement and Nova are a fake that answers
over HTTP, in a process of its own: only the CPU time of who asks is counted.
As Nova does, it lists servers that no host has each time, and others when they
changed. Run alone on the machine::

    PYTHONPATH=. python benchmarks/queue_cycle.py --out FILE
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import functools
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

from nova_fairness.cluster import charging
from nova_fairness.cluster import clients
from nova_fairness.cluster import placement
from nova_fairness.cluster import servers
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import budgets
from tests.fixtures import fake_cloud

SERVERS = 20
CHANGED = 30
"""Servers that changed since the last look."""

ORDER = orders.FairTree()
"""What the service is delivered with."""

LOOKS = 5
BEGIN = 1.8e9
"""A Friday morning, seconds of the epoch."""

PAUSE_S = 20.0
_FLAVOR = {'vcpus': 2, 'ram': 2048, 'disk': 10, 'ephemeral': 0}
_REST = 'x' * 1400
"""What else Nova says of a server: 1.8 kB altogether."""

_BEGAN = '2026-01-01T00:00:00.000000'


class FakeLargeCloud(fake_cloud.FakeCloud):
    """One that lists what changed, and adds up as fast as a database."""

    def __init__(self, hosts: int, requests: tuple[request.Request, ...]):
        super().__init__()
        chance = random.Random(hosts)
        for host in range(hosts):
            self.add_host(f'host-{host:05}', 128, 512_000)
            for number in range(SERVERS):
                self._add_running(f's{host}-{number}', host, chance)
        for each in requests:
            for server in each.servers:
                self.add_server(
                    server, each.project, each.user, flavor=_FLAVOR, more=_REST
                )
            if each.group:
                self.groups[each.group.uuid] = list(each.servers)
        self._sums: dict[tuple[str, str], int] = {}
        self._usages: dict[tuple[str, str], dict[str, int]] = {}
        for consumer, parts in self.allocations.items():
            project = self.owners[consumer]
            user = self.servers[consumer]['user_id']
            for provider, amounts in parts.items():
                for name, amount in amounts.items():
                    self._count(self._sums, (provider, name), amount)
                    for key in ((project, ''), (project, user)):
                        whose = self._usages.setdefault(key, {})
                        self._count(whose, name, amount)

    def _count(self, sums: dict[Any, int], key: Any, amount: int) -> None:
        sums[key] = sums.get(key, 0) + amount

    def _get_usages(self, place, query, body):
        whose = query['project_id'], query.get('user_id', '')
        return {'usages': self._usages.get(whose, {})}

    def used(self, provider: str, name: str) -> int:
        return self._sums.get((provider, name), 0)

    def _add_running(self, name: str, host: int, chance: random.Random):
        vcpus, project = (
            1 + chance.randrange(10),
            f'p{chance.randrange(fairqueue.PROJECTS)}',
        )
        flavor = {
            'vcpus': vcpus,
            'ram': vcpus * 2048,
            'disk': 0,
            'ephemeral': 0,
        }
        server = fake_cloud.name_uuid(name)
        user = f'u{chance.randrange(fairqueue.USERS)}'
        self.add_server(server, project, user, flavor=flavor, more=_REST)
        self.servers[server]['OS-SRV-USG:launched_at'] = _BEGAN
        amounts = {'VCPU': vcpus, 'MEMORY_MB': vcpus * 2048}
        self.build(server, f'host-{host:05}', amounts)

    def _get_servers(self, place, query, body):
        found = list(self.servers.values())
        if 'changes-since' in query:
            waiting = [e for e in found if e['status'] == 'BUILD']
            found = [*found[:CHANGED], *waiting]
        return {'servers': fake_cloud.page(found, query)}


def _serve(cloud: FakeLargeCloud, pipe: Any) -> None:
    with fake_cloud.serving(cloud) as port:
        pipe.send(port)
        pipe.recv()


@contextlib.contextmanager
def served(
    cloud: FakeLargeCloud,
) -> Iterator[Callable[[Callable[..., Any]], Any]]:
    """Who asks a cloud that is served by another process."""
    context = multiprocessing.get_context('fork')
    mine, its = context.Pipe()
    process = context.Process(target=_serve, args=(cloud, its))
    process.start()
    url = f'http://127.0.0.1:{mine.recv()}'
    plain = session.Session(noauth.NoAuth(url))
    try:
        yield lambda make: make(adapter.Adapter(plain, endpoint_override=url))
    finally:
        mine.send(None)
        process.join()


def timed_s(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process that a call takes, and what it gives."""
    begun_s = time.process_time()
    found = call()
    return time.process_time() - begun_s, found


@contextlib.contextmanager
def stored() -> Iterator[store_module.Store]:
    """A store that this process leads with the epoch 1."""
    with tempfile.TemporaryDirectory() as place:
        keys = pathlib.Path(place) / 'keys'
        sealing.add_key(keys)
        engine = database.connect(f'sqlite:///{place}/s.sqlite')
        schema.upgrade(engine)
        store = store_module.Store(engine, sealing.read(keys))
        store.take_over(0, 'benchmark', 0.0)
        yield store


def measure(
    waiting: int, hosts: int, flavors: int, is_bounded: bool
) -> dict[str, Any]:
    """Look, charge and plan some times; medians, and what a charge takes."""
    requests = fairqueue.requests(waiting, random.Random(waiting), flavors)
    limits = {
        f'p{n}': cluster.Limits({'VCPU': 10}, {'VCPU': 100_000})
        for n in range(0, fairqueue.PROJECTS, 2)
    }
    accounts = fairqueue.accounts(hosts) if is_bounded else ()
    spent_s: dict[str, list[float]] = {'look': [], 'ledger': [], 'plan': []}
    with served(FakeLargeCloud(hosts, requests)) as ask, stored() as store:
        reader = snapshot_module.Reader(
            placement.Placement(ask(clients.placement)),
            servers.Nova(ask(clients.nova)),
            limits,
            lambda: accounts,
        )
        ledger = charging.Charging(store, reader, 7 * 86400.0, budgets.Terms())
        for number in range(LOOKS + 2):
            now = BEGIN + PAUSE_S * number
            look = functools.partial(reader.read, requests, {}, now)
            look_s, view = timed_s(look)
            charge = functools.partial(ledger.charge, view, now, 1)
            ledger_s, snapshot = timed_s(charge)
            plan_s, _ = timed_s(
                functools.partial(planner.plan, snapshot, now, ORDER)
            )
            # The first looks read everything.
            if number >= 2:
                for name, took_s in zip(
                    spent_s, (look_s, ledger_s, plan_s), strict=True
                ):
                    spent_s[name].append(took_s)
    medians_s = {
        f'{name}_cpu_s': round(float(np.median(each)), 3)
        for name, each in spent_s.items()
    }
    found = {
        'requests': waiting,
        'hosts': hosts,
        **medians_s,
        'cycle_cpu_s': round(sum(medians_s.values()), 3),
        'charge_cpu_s': round(max(spent_s['ledger']), 3),
    }
    print(found, flush=True)
    return found


def measure_all(flavors: int, is_bounded: bool) -> dict[str, Any]:
    """Measure every size; what cycles cost, and how that grows."""
    found = [measure(*size, flavors, is_bounded) for size in fairqueue.SIZES]
    logs = [
        (math.log(each['requests']), math.log(each['cycle_cpu_s']))
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
