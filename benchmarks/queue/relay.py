# SPDX-License-Identifier: Apache-2.0

"""Time that the relay adds to a call of conductor, and its cost of holding.

A real RabbitMQ, a conductor that answers at once (a fake), and the relay as a
process of its own with a store on SQLite. Calls go to conductor directly and
through the relay in turn, so that whatever else the machine does falls on
both. Then builds are held, and memory and CPU time of the relay are read. A
sender waits until the broker has its message on the disk, and nova-api has
many of them: what one alone reaches is measured at the end. Run alone on the
machine::

    python -m benchmarks.queue.relay --out benchmarks/results/relay.json
"""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.queue import recorded
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import tables
from nova_fairness.relay import link
from nova_fairness.relay import topology
from tests.fixtures import rabbitmq_server
from tests.integration.relay import test_relay as ends

CALLS, HOLDS = 2000, 10_000
STEPS = 5
SENDERS = 16
ALONE = 1000
"""Builds of one sender."""

WARM_UP = 50
"""Calls that make connections and are not counted."""

BODY_BYTES = 15_000
PATIENCE_S = 600.0
_RELAY = 'from nova_fairness.cmd import relay; raise SystemExit(relay.main())'


@contextlib.contextmanager
def relay(
    directory: pathlib.Path, url: str, places: topology.Places
) -> Iterator[tuple[int, sa.Engine]]:
    """The process of a relay and its database."""
    keys, stored = directory / 'keys', f'sqlite:///{directory}/s.sqlite'
    sealing.add_key(keys)
    engine = database.open_engine(stored)
    schema.upgrade_tables(engine)
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
        yield process.pid, engine
    finally:
        process.terminate()
        process.wait()


def rss_mib(pid: int) -> float:
    """Memory of a process."""
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f'process {pid} has ended')


def cpu_s(pid: int) -> float:
    """CPU time that a process has used."""
    told = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2]
    user, system = told.split()[11:13]
    return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')


def timed_ms(call: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    begun_s = time.monotonic()
    call()
    return (time.monotonic() - begun_s) * 1000


def measure_calls(direct: Any, front: Any, count: int) -> dict[str, Any]:
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


class Holding:
    """Builds that are sent, and held by a relay.

    :param front: where nova-api sends.
    :param pid: of the relay.
    :param engine: of its database.
    :param watching: the broker.
    :param queue: of what is to be stored.
    """

    def __init__(
        self,
        front: Any,
        pid: int,
        engine: sa.Engine,
        watching: link.Link,
        queue: str,
    ) -> None:
        self._front = front
        self._pid = pid
        self._engine = engine
        self._watching = watching
        self._queue = queue
        self._text = 'x' * BODY_BYTES

    def step(self, count: int, senders: int) -> dict[str, float]:
        """Hold so many more, sent by so many at once."""
        upto = self._held() + count
        begun_s, spent_s = time.monotonic(), cpu_s(self._pid)
        with futures.ThreadPoolExecutor(senders) as pool:
            list(pool.map(self._send, range(count)))
        # The database is asked last, which takes time from the relay.
        while not (self._watching.taken(self._queue) and self._held() == upto):
            if time.monotonic() - begun_s > PATIENCE_S:
                raise RuntimeError(f'fewer than {upto} are held')
            time.sleep(0.05)
        took_s, spent_s = (
            time.monotonic() - begun_s,
            cpu_s(self._pid) - spent_s,
        )
        found = {
            'held': upto,
            'senders': senders,
            'memory_mib': round(rss_mib(self._pid), 1),
            'cpu_ms_a_hold': round(1000 * spent_s / count, 2),
            'holds_a_second': round(count / took_s),
        }
        print(found, flush=True)
        return found

    def _held(self) -> int:
        query = sa.select(sa.func.count()).select_from(tables.CASTS)
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def _send(self, number: int) -> None:
        self._front.cast({}, ends.BUILD, number=number, text=self._text)


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
        relay(pathlib.Path(place), broker.url, places) as (pid, engine),
        ends.conductor(broker, places),
        ends.nova_api(broker, places) as front,
    ):
        direct = ends.transport(broker, places.target)
        client = ends.oslo_messaging.get_rpc_client(
            direct, ends.oslo_messaging.Target(topic='conductor')
        )
        calls = measure_calls(client, front, given.calls)
        print(calls, flush=True)
        watching = link.Link(broker.url, places)
        holding = Holding(front, pid, engine, watching, places.held)
        held = [
            holding.step(given.holds // STEPS, SENDERS) for _ in range(STEPS)
        ]
        held.append(holding.step(ALONE, 1))
        watching.close()
        direct.cleanup()
    recorded.write(
        given.out, {'calls': given.calls, 'a_call': calls, 'holding': held}
    )


if __name__ == '__main__':
    main()
