# SPDX-License-Identifier: Apache-2.0

"""Cost for nodes of exchanging their reports.

Real sockets on the loopback interface and a real Redis; many nodes share a
process, as one machine has too few descriptors for 200 processes' worth of
everything else. For each number of nodes three ways run one after the other
(see ``mesh_nodes.py``), so that ratios are from one run. Needs no root::

    python -m benchmarks.exchange.mesh --out benchmarks/results/mesh.json
"""

import argparse
from collections.abc import Callable
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import msgpack

from benchmarks.exchange import mesh_nodes
from benchmarks.exchange import mesh_ratios
from nova_fairness.exchange import codec
from tests.fixtures import redis_server

WORKER = 'benchmarks.exchange.mesh_worker'
IDLE_S = 3.0
"""How long idle nodes are measured."""

NODES_PER_PROCESS = 40
CASES = (
    (10, 20),
    (50, 20),
    (100, 20),
    (200, 20),
    (10, 200),
    (50, 200),
    (10, 1000),
)
"""Nodes and users of each; all of them take about seven minutes."""

ROUND_S = {10: 1.0, 50: 2.0, 100: 4.0, 200: 8.0}
ROUNDS = {10: 10, 50: 4, 100: 3, 200: 2}


def loopback_bytes() -> int:
    """How much the loopback interface has carried, headers included."""
    for line in pathlib.Path('/proc/net/dev').read_text().splitlines():
        name, _, counters = line.partition(':')
        if name.strip() == 'lo':
            return int(counters.split()[0])
    raise LookupError('no loopback interface')


class Worker:
    """A process with some of the nodes."""

    def __init__(self, spec: dict) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-m', WORKER, json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, **order: object) -> None:
        """Say what to do next."""
        self._process.stdin.write(json.dumps(order) + '\n')
        self._process.stdin.flush()

    def answer(self) -> dict:
        """Wait for the result of the order."""
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError('a worker ended; see above')
        return json.loads(line)

    def end(self) -> None:
        """Wait for its end, at most a minute."""
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run(
    kind: str,
    total: int,
    users: int,
    rounds: int,
    url: str,
    server_cpu_s: Callable[[], float] = lambda: 0.0,
) -> dict:
    """Measure one way with so many nodes.

    :param server_cpu_s: CPU time that the server of the transport has used.
    """
    workers = [
        Worker(
            {
                'kind': kind,
                'first': first,
                'count': min(NODES_PER_PROCESS, total - first),
                'total': total,
                'users': users,
                'vms_per_user': 3,
                'url': url,
            }
        )
        for first in range(0, total, NODES_PER_PROCESS)
    ]
    try:
        return _run_workers(workers, kind, total, users, rounds, server_cpu_s)
    finally:
        for worker in workers:
            worker.end()


def _run_workers(
    workers: list[Worker],
    kind: str,
    total: int,
    users: int,
    rounds: int,
    server_cpu_s: Callable[[], float],
) -> dict:
    _connect(workers, f'{kind}, {total} nodes')
    period_s = ROUND_S.get(total, max(1.0, total / 20))
    start_s = time.monotonic() + IDLE_S
    for worker in workers:
        worker.tell(start_s=start_s, rounds=rounds, period_s=period_s)
    time.sleep(max(0.0, start_s - time.monotonic()))
    before, server_before_s = loopback_bytes(), server_cpu_s()
    results = [worker.answer() for worker in workers]
    carried = loopback_bytes() - before
    server_s = server_cpu_s() - server_before_s
    for worker in workers:
        worker.tell()
    for worker in workers:
        worker.answer()
    lasted_s = rounds * period_s + 0.5
    sums = {
        name: sum(item[name] for item in results)
        for name in ('cpu_s', 'idle_cpu_s', 'descriptors', 'pss_kib')
    }
    busy_s = sums['cpu_s'] - sums['idle_cpu_s'] * lasted_s
    return {
        'kind': kind,
        'nodes': total,
        'users': users,
        'rounds': rounds,
        'period_s': period_s,
        'cpu_ms_per_node_round': 1e3 * busy_s / total / rounds,
        'idle_cpu_ms_per_node_s': 1e3 * sums['idle_cpu_s'] / total,
        'bytes_per_node_round': carried / total / rounds,
        'server_cpu_ms_per_round': 1e3 * server_s / rounds,
        'descriptors_per_node': sums['descriptors'] / total,
        'pss_kib_per_node': sums['pss_kib'] / total,
        **_arrival_figures(results),
    }


def _connect(workers: list[Worker], case: str) -> None:
    """Connect all nodes, and wait until each has heard each other."""
    addresses = [
        item for worker in workers for item in worker.answer()['addresses']
    ]
    for worker in workers:
        worker.tell(addresses=addresses)
    settled = [worker.answer()['settled'] for worker in workers]
    if not all(settled):
        raise RuntimeError(f'{case}: not everybody was heard')


def _arrival_figures(results: list[dict]) -> dict:
    """Return how many reports arrived, and when they were used."""
    delays = [n for item in results for n in item['rounds_until_used']]
    return {
        'heard_by_fewest': min(
            n for item in results for n in item['received']
        ),
        'rounds_until_used_mean': statistics.fmean(delays),
        'rounds_until_used_max': max(delays),
    }


def message_bytes(users: int, vms_per_user: int) -> int:
    """Size of the report of a node."""
    made = mesh_nodes.node_report(1, users, vms_per_user)
    return len(msgpack.packb(codec.encode(made, as_bytes=True)))


def cases(options: argparse.Namespace) -> list[tuple[int, int]]:
    """Cases to measure: all, or each combination of the named numbers."""
    if not options.nodes and not options.users:
        return list(CASES)
    nodes = options.nodes or ROUND_S
    return [
        (total, users) for total in nodes for users in options.users or (20,)
    ]


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--nodes', type=int, nargs='+')
    parser.add_argument('--users', type=int, nargs='+')
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    clients = '--maxclients', '10000'
    with redis_server.running(extra=clients) as server:
        url = f'{server.url}?insecure=true'
        for total, users in cases(options):
            rounds = options.rounds or ROUNDS.get(total, 3)
            for kind in mesh_nodes.KINDS:
                rows.append(run(kind, total, users, rounds, url))
                print(json.dumps(rows[-1]), flush=True)
    result = {
        'version': 1,
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'kernel': platform.release(),
            'python': platform.python_version(),
        },
        'message_bytes': [
            {
                'users': users,
                'vms_per_user': vms,
                'bytes': message_bytes(users, vms),
            }
            for users in (20, 200, 1000)
            for vms in (1, 10)
        ],
        'rows': rows,
        'ratios': mesh_ratios.ratios(rows),
        'model': mesh_ratios.model(rows),
    }
    for item in result['ratios']:
        print(json.dumps(item))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
