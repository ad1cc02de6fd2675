# SPDX-License-Identifier: Apache-2.0

"""What a cycle of the queue costs: a look at the cloud, and a plan.

Clouds up to 1,000 hosts with 20 servers each, in which up to 10,000 requests
wait. Placement and Nova are a fake that answers over HTTP, in a process of its
own: only the CPU time of who asks is counted. As Nova does, it lists servers
that no host has each time, and others when they changed. Run alone on the
machine::

    PYTHONPATH=. python benchmarks/queue_cycle.py --out FILE
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import math
import multiprocessing
import random
import time
from typing import Any

import fairqueue
from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
import numpy as np
import recorded

from nova_fairness.cluster import clients
from nova_fairness.cluster import placement
from nova_fairness.cluster import servers
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import fake_cloud

SERVERS = 20
CHANGED = 30
"""Servers that changed since the last look."""

LOOKS = 5
_PROJECTS = 200
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
        for parts in self.allocations.values():
            for provider, amounts in parts.items():
                for name, amount in amounts.items():
                    key = provider, name
                    self._sums[key] = self._sums.get(key, 0) + amount

    def used(self, provider: str, name: str) -> int:
        return self._sums.get((provider, name), 0)

    def _add_running(self, name: str, host: int, chance: random.Random):
        vcpus, project = 1 + chance.randrange(10), f'p{chance.randrange(200)}'
        flavor = {
            'vcpus': vcpus,
            'ram': vcpus * 2048,
            'disk': 0,
            'ephemeral': 0,
        }
        server = fake_cloud.name_uuid(name)
        self.add_server(server, project, flavor=flavor, more=_REST)
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


def measure(waiting: int, hosts: int, flavors: int) -> dict[str, Any]:
    """Look and plan some times; the medians."""
    requests = fairqueue.requests(waiting, random.Random(waiting), flavors)
    limits = {
        f'p{n}': cluster.Limits({'VCPU': 10}, {'VCPU': 100_000})
        for n in range(0, _PROJECTS, 2)
    }
    looks, plans = [], []
    with served(FakeLargeCloud(hosts, requests)) as ask:
        reader = snapshot_module.Reader(
            placement.Placement(ask(clients.placement)),
            servers.Nova(ask(clients.nova)),
            limits,
        )
        for number in range(LOOKS + 2):
            now = 1.8e9 + 20 * number
            look_s, view = timed_s(
                lambda now=now: reader.read(requests, {}, now)
            )
            plan_s, _ = timed_s(
                lambda view=view, now=now: planner.plan(view.snapshot, now)
            )
            # The first looks read everything.
            if number >= 2:
                looks.append(look_s)
                plans.append(plan_s)
    look_s, plan_s = float(np.median(looks)), float(np.median(plans))
    found = {
        'requests': waiting,
        'hosts': hosts,
        'look_cpu_s': round(look_s, 3),
        'plan_cpu_s': round(plan_s, 3),
        'cycle_cpu_s': round(look_s + plan_s, 3),
    }
    print(found, flush=True)
    return found


def main() -> None:
    """Measure every size."""
    parser = recorded.parser(__doc__)
    parser.add_argument('--flavors', type=int, default=50)
    given = parser.parse_args()
    found = [measure(*size, given.flavors) for size in fairqueue.SIZES]
    logs = [
        (math.log(each['requests']), math.log(each['cycle_cpu_s']))
        for each in found
    ]
    slope = np.polyfit(*zip(*logs, strict=True), 1)[0]
    recorded.write(
        given.out,
        {
            'flavors': given.flavors,
            'exponent': round(float(slope), 2),
            'cycles': found,
        },
    )


if __name__ == '__main__':
    main()
