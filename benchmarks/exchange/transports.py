# SPDX-License-Identifier: Apache-2.0

"""Cost of exchanging reports by ``zmq+redis://`` and by ``rabbit://``.

All nodes of this machine publish and read reports as agents do, over real
sockets on loopback. For each number of nodes and each repetition both
transports run one after the other, with a server of their own: Redis or
RabbitMQ. Its CPU time counts from the first measured round to the last::

    python -m benchmarks.exchange.transports --out FILE
"""

import argparse
from collections.abc import Iterator
import contextlib
import json
import pathlib
import platform
import statistics
import sys

from benchmarks.exchange import mesh
from benchmarks.queue import relay
from tests.fixtures import rabbitmq_server
from tests.fixtures import redis_server

NODES = (5, 10, 20, 50)
USERS = 20
REPETITIONS = 5
ROUNDS = 3
COMPARED = (
    'cpu_ms_per_node_round',
    'server_cpu_ms_per_round',
    'idle_cpu_ms_per_node_s',
    'bytes_per_node_round',
    'pss_kib_per_node',
)


def tree_cpu_s(pid: int) -> float:
    """CPU time in seconds of a process and of its descendants that run."""
    children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    return relay.cpu_s(pid) + sum(map(tree_cpu_s, map(int, children.split())))


@contextlib.contextmanager
def zmq_server() -> Iterator[tuple[str, int]]:
    """Transport URL and process of a Redis."""
    with redis_server.running() as server:
        yield f'{server.url}?insecure=true', server.pid


@contextlib.contextmanager
def rabbit_server() -> Iterator[tuple[str, int]]:
    """Transport URL and process of a RabbitMQ."""
    with rabbitmq_server.running() as server:
        yield server.url.replace('amqp://', 'rabbit://', 1), server.group


SERVERS = {'zmq': zmq_server, 'rabbit': rabbit_server}


def measure_transport(name: str, total: int, rounds: int) -> dict:
    """A row of one transport with ``total`` nodes."""
    with SERVERS[name]() as (url, pid):
        row = mesh.run(
            'exchange', total, USERS, rounds, url, lambda: tree_cpu_s(pid)
        )
    return {**row, 'transport': name}


def ratios(rows: list[dict]) -> list[dict]:
    """RabbitMQ against ZeroMQ by number of nodes: median and range.

    Runs in which ZeroMQ takes nothing do not count.
    """
    found = []
    for total in dict.fromkeys(row['nodes'] for row in rows):
        of = {
            name: [
                row
                for row in rows
                if (row['nodes'], row['transport']) == (total, name)
            ]
            for name in SERVERS
        }
        part: dict = {'nodes': total}
        for quantity in COMPARED:
            # CPU time counts in hundredths of a second, and can be none.
            each = [
                rabbit[quantity] / zmq[quantity]
                for zmq, rabbit in zip(of['zmq'], of['rabbit'], strict=True)
                if zmq[quantity]
            ]
            part[quantity] = each and {
                'median': statistics.median(each),
                'least': min(each),
                'most': max(each),
            }
        found.append(part)
    return found


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--nodes', type=int, nargs='+', default=NODES)
    parser.add_argument('--repetitions', type=int, default=REPETITIONS)
    parser.add_argument('--rounds', type=int, default=ROUNDS)
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for total in options.nodes:
        for _ in range(options.repetitions):
            for name in SERVERS:
                rows.append(measure_transport(name, total, options.rounds))
                print(json.dumps(rows[-1]), flush=True)
    result = {
        'version': 1,
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'kernel': platform.release(),
            'python': platform.python_version(),
        },
        'rows': rows,
        'ratios': ratios(rows),
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
