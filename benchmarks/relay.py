# SPDX-License-Identifier: Apache-2.0

"""What the relay adds to a call of conductor, and what holding costs it.

A real RabbitMQ, a conductor that answers at once (a fake), and the relay as a
process of its own with a store on SQLite. Calls go to conductor directly and
through the relay in turn, so that whatever else the machine does falls on
both. Then builds are held, and the memory of the relay is read. Run alone on
the machine::

    PYTHONPATH=. python benchmarks/relay.py --out benchmarks/results/relay.json
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import recorded

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.relay import link
from nova_fairness.relay import topology
from tests.fixtures import rabbitmq_server
from tests.integration.relay import test_relay as ends

CALLS, HOLDS = 2000, 10_000
STEPS = 5
WARM_UP = 50
"""Calls that make connections and are not counted."""

BODY_BYTES = 15_000
PATIENCE_S = 600.0
_RELAY = 'from nova_fairness.cmd import relay; raise SystemExit(relay.main())'


@contextlib.contextmanager
def relay(
    directory: pathlib.Path, url: str, places: topology.Places
) -> Iterator[tuple[int, store_module.Store]]:
    """The process of a relay and its store."""
    keys, stored = directory / 'keys', f'sqlite:///{directory}/s.sqlite'
    sealing.add_key(keys)
    engine = database.connect(stored)
    schema.upgrade(engine)
    path = directory / 'relay.conf'
    path.write_text(
        f'[fairness_cluster]\ndatabase = {stored}\nkey_file = {keys}\n'
        f'broker = {url}\nfront_exchange = {places.front}\n'
        f'nova_exchange = {places.target}\n'
    )
    link.Link(url, places).close()
    with (directory / 'log').open('wb') as log:
        process = subprocess.Popen(
            [sys.executable, '-c', _RELAY, '--config-file', str(path)],
            stdout=log,
            stderr=log,
        )
    try:
        yield process.pid, store_module.Store(engine, sealing.read(keys))
    finally:
        process.terminate()
        process.wait()


def rss_mib(pid: int) -> float:
    """Memory of a process."""
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f'process {pid} has ended')


def timed_ms(call: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    begun_s = time.monotonic()
    call()
    return (time.monotonic() - begun_s) * 1000


def passing(direct: Any, front: Any, count: int) -> dict[str, Any]:
    """Milliseconds of calls past the relay, and of calls through it."""
    took: dict[str, list[float]] = {'directly': [], 'with_the_relay': []}
    for number in range(count + WARM_UP):
        for name, client in zip(took, (direct, front), strict=True):
            spent_ms = timed_ms(
                lambda client=client, number=number: client.call(
                    {}, 'migrate_server', number=number
                )
            )
            if number >= WARM_UP:
                took[name].append(spent_ms)
    found = {
        name: np.percentile(spent_ms, (50, 99))
        for name, spent_ms in took.items()
    }
    found['added'] = found['with_the_relay'] - found['directly']
    return {
        name: {'p50_ms': round(median, 2), 'p99_ms': round(late, 2)}
        for name, (median, late) in found.items()
    }


def holding(
    front: Any,
    pid: int,
    store: store_module.Store,
    watching: link.Link,
    queue: str,
    count: int,
) -> list[dict[str, float]]:
    """Hold builds; the relay's memory and holds a second after each step."""
    text, sent, found = 'x' * BODY_BYTES, 0, []
    for step in range(1, STEPS + 1):
        begun_s = time.monotonic()
        upto = count * step // STEPS
        while sent < upto:
            front.cast({}, ends.BUILD, number=sent, text=text)
            sent += 1
        # The store is asked last: to count in it takes time from the relay.
        while not (watching.taken(queue) and len(store.unread(count)) == upto):
            if time.monotonic() - begun_s > PATIENCE_S:
                raise RuntimeError(f'fewer than {upto} are held')
            time.sleep(0.2)
        rate = count / STEPS / (time.monotonic() - begun_s)
        found.append(
            {
                'held': upto,
                'memory_mib': round(rss_mib(pid), 1),
                'holds_a_second': round(rate),
            }
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Measure both."""
    parser = recorded.parser(__doc__)
    parser.add_argument('--calls', type=int, default=CALLS)
    parser.add_argument('--holds', type=int, default=HOLDS)
    given = parser.parse_args()
    places = topology.Places(front='bench_front', target='bench_nova')
    with (
        rabbitmq_server.running() as broker,
        tempfile.TemporaryDirectory() as place,
        relay(pathlib.Path(place), broker.url, places) as (pid, store),
        ends.conductor(broker, places),
        ends.nova_api(broker, places) as front,
    ):
        direct = ends.transport(broker, places.target)
        client = ends.oslo_messaging.get_rpc_client(
            direct, ends.oslo_messaging.Target(topic='conductor')
        )
        calls = passing(client, front, given.calls)
        print(calls, flush=True)
        watching = link.Link(broker.url, places)
        held = holding(front, pid, store, watching, places.held, given.holds)
        watching.close()
        direct.cleanup()
    recorded.write(
        given.out, {'calls': given.calls, 'a_call': calls, 'holding': held}
    )


if __name__ == '__main__':
    main()
