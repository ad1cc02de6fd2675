# SPDX-License-Identifier: Apache-2.0

"""Time of status, lists and history of a large queue, over HTTP.

10,000 requests on 1,000 full hosts with 20 servers each, 2,210 accounts. The
store is SQLite, the service has run cycles, and its answers are real: the WSGI
application of the HTTP interface is served on loopback, with the endpoint of
the calls in the same process, and JSON between the two as on a transport.
Nova, Placement and Keystone are fakes. An operator asks for each kind of
answer in turn, so that each kind meets the same state of the machine. Each run
has requests of its own seed.

Of each answer the time until it is read is recorded, and the CPU time of the
process, which includes that of the client. On a machine that does other work,
too, the CPU time is what the server needs. ``flat`` is the CPU time of the
last page of a list by that of its first page. Holds if each 95th percentile of
CPU time is less than a second::

    python -m benchmarks.queue.pages --out FILE

Exit code 1 if it does not hold.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import http.client
import json
import random
import sys
import threading
import time
from typing import Any
from wsgiref import simple_server

import numpy as np

from benchmarks.queue import cycle
from benchmarks.queue import fairqueue
from benchmarks.queue import large_cloud
from benchmarks.queue import recorded
from nova_fairness.cluster.api import requests as operations
from nova_fairness.rpc import requests as rpc
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

BAR_S = 1.0
CYCLES = 2
PAGE = 100
LONG_PAGE = 1000
FLAVORS = 50
UNKNOWN = 'requests/00000000-0000-4000-8000-000000000000'
"""Path of a request that is not there."""

LISTS = {'requests': 'uuid', 'requests ended': 'uuid', 'shares': 'name'}
"""Lists with a last page, and what names their entries."""


class Handler(simple_server.WSGIRequestHandler):
    """Keeps connections open, and logs nothing."""

    protocol_version = 'HTTP/1.1'

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing."""


class Client:
    """An operator who asks, each time over a new connection.

    :param port: of the interface.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> tuple[tuple[float, float], Any]:
        """Seconds and CPU seconds that an answer took, and the answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self._port)
        with contextlib.closing(connection):
            begun_s, cpu_s = time.perf_counter(), time.process_time()
            connection.request(
                'GET',
                f'/v2.1/fairness/{path}',
                headers={'X-Auth-Token': 'admin'},
            )
            said = connection.getresponse()
            body = said.read()
            took = time.perf_counter() - begun_s, time.process_time() - cpu_s
        if said.status != (404 if path == UNKNOWN else 200):
            raise RuntimeError(f'{path}: HTTP {said.status}: {body[:200]!r}')
        return took, json.loads(body)


@contextlib.contextmanager
def run_http_server(answers: operations.ClusterOperations) -> Iterator[Client]:
    """The HTTP interface on loopback."""
    client = rpc.RequestsClient(fake_requests.FakeRpc(answers))
    cloud = fake_cloud.FakeCloud(None, connect_requests=lambda: client)
    server = simple_server.make_server(
        '127.0.0.1', 0, cloud, handler_class=Handler
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Client(server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def queue(
    seed: int, waiting: int, hosts: int
) -> Iterator[tuple[Client, list[str]]]:
    """The interface of a service that has run some cycles.

    :returns: a client, and UUIDs of requests.
    """
    asked = cycle.waiting_requests(waiting, FLAVORS, seed)
    cloud = large_cloud.FakeLargeCloud(hosts, asked)
    with large_cloud.ServedCloud(cloud) as behind, cycle.new_store() as store:
        for each in asked:
            cycle.store_request(store, each)
        running = cycle.Cycles(behind, store, {}, fairqueue.accounts(hosts))
        started: list[tuple[str, str, dict[str, int]]] = []
        for number in range(CYCLES):
            behind.replace_servers(max(hosts // 100, 1), started)
            running.now = cycle.BEGIN + cycle.PAUSE_S * number
            running.measured()
            started = running.started()
        answers = operations.ClusterOperations(store, running.service)
        with run_http_server(answers) as client:
            yield client, [each.uuid for each in asked]


def path(name: str, more: str = '') -> str:
    """Path and query of a page of a list of all projects."""
    noun, _, ended = name.partition(' ')
    with_ended = '&ended=true' if ended else ''
    return f'{noun}?all_projects=true&limit={PAGE}{with_ended}{more}'


def last_marker(client: Client, name: str) -> str:
    """Marker of the last whole page of a list."""
    noun, key = name.partition(' ')[0], LISTS[name]
    found: list[str] = []
    more = ''
    while True:
        page = client.get(path(name, more))[1]
        found += [each[key] for each in page[noun]]
        if f'{noun}_links' not in page:
            return found[-PAGE - 1]
        more = f'&marker={found[-1]}'


def kinds(
    client: Client, uuids: list[str], chance: random.Random
) -> Mapping[str, Callable[[], str]]:
    """Paths of all kinds of answers."""
    markers = {name: last_marker(client, name) for name in LISTS}
    some = lambda: chance.choice(uuids)  # noqa: E731
    whole = f'requests?all_projects=true&limit={LONG_PAGE}'
    found: dict[str, Callable[[], str]] = {
        'status': lambda: 'status',
        'capacity': lambda: 'capacity',
        'request': lambda: f'requests/{some()}',
        'request, unknown': lambda: UNKNOWN,
        'request with events': lambda: f'requests/{some()}?events=true',
        'requests, a long page': lambda: whole,
        'limits': lambda: path('limits'),
        'preemptions': lambda: path('preemptions'),
    }
    for name, marker in markers.items():
        first, last = path(name), path(name, f'&marker={marker}')
        found[f'{name}, first page'] = lambda first=first: first
        found[f'{name}, last page'] = lambda last=last: last
    return found


def percentiles(taken: list[tuple[float, float]]) -> dict[str, float]:
    """Of one kind: time and CPU time, seconds."""
    return {
        f'p{percent}_{what}': round(float(np.percentile(values, percent)), 4)
        for what, values in zip(
            ('s', 'cpu_s'), zip(*taken, strict=True), strict=True
        )
        for percent in (50, 95)
    }


def measure_answers(
    seed: int, waiting: int, hosts: int, rounds: int
) -> dict[str, Any]:
    """Seconds of all kinds in one run."""
    taken: dict[str, list[tuple[float, float]]] = {}
    with queue(seed, waiting, hosts) as (client, uuids):
        asked = kinds(client, uuids, random.Random(seed))
        for number in range(rounds + 1):
            for name, make in asked.items():
                took, _ = client.get(make())
                # The first round is the first ever.
                if number:
                    taken.setdefault(name, []).append(took)
    found = {name: percentiles(each) for name, each in taken.items()}
    flat = {
        name: round(
            found[f'{name}, last page']['p50_cpu_s']
            / found[f'{name}, first page']['p50_cpu_s'],
            2,
        )
        for name in LISTS
    }
    print(seed, found, flat, flush=True)
    return {'seed': seed, 'kinds': found, 'flat': flat}


def range_over_runs(runs: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """Smallest and largest value of each kind over all runs."""
    return {
        name: [
            min(run['kinds'][name][what] for run in runs),
            max(run['kinds'][name][what] for run in runs),
        ]
        for name in runs[0]['kinds']
    }


def main() -> int:
    """Measure, and write what was found."""
    parser = recorded.parser(__doc__)
    parser.add_argument('--seeds', type=int, nargs='+', default=[1, 2, 3])
    parser.add_argument('--requests', type=int, default=10_000)
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=40)
    given = parser.parse_args()
    found: dict[str, Any] = {
        'requests': given.requests,
        'hosts': given.hosts,
        'accounts': len(fairqueue.accounts(given.hosts)),
        'rounds': given.rounds,
        'bar_s': BAR_S,
    }
    runs: list[dict[str, Any]] = []
    for seed in given.seeds:
        runs.append(
            measure_answers(seed, given.requests, given.hosts, given.rounds)
        )
        cpu = range_over_runs(runs, 'p95_cpu_s')
        slow = sorted(name for name, (_, most) in cpu.items() if most >= BAR_S)
        found |= {'p95_cpu_s': cpu, 'p95_s': range_over_runs(runs, 'p95_s')}
        found |= {'slow': slow, 'passed': not slow, 'runs': runs}
        recorded.write(given.out, found)
    return 0 if found['passed'] else 1


if __name__ == '__main__':
    sys.exit(main())
