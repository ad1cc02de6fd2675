# SPDX-License-Identifier: Apache-2.0

"""One process of ``mesh.py``: some of the nodes.

Reads one JSON object per line (an order), writes one per line (its result).
"""

import collections
import json
import pathlib
import resource
import sys
import time

import zmq

from benchmarks.exchange import mesh_nodes

SETTLE_S = 120.0
WARM_UP_PERIOD_S = 2.0


def write_answer(**answer: object) -> None:
    """Answer the parent."""
    sys.stdout.write(json.dumps(answer) + '\n')
    sys.stdout.flush()


def read_order() -> dict:
    """Wait for what the parent wants."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)
    return json.loads(line)


def cpu_s() -> float:
    """CPU time of this process, all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pss_kib() -> int:
    """Proportional share of memory of this process."""
    text = pathlib.Path('/proc/self/smaps_rollup').read_text()
    return next(
        int(line.split()[1])
        for line in text.splitlines()
        if line.startswith('Pss:')
    )


def descriptors() -> int:
    """Count the open descriptors of this process."""
    return sum(1 for _ in pathlib.Path("/proc/self/fd").iterdir())


class Worker:
    """Nodes ``first`` to ``first + count - 1`` of ``total``."""

    def __init__(self, spec: dict) -> None:
        self._spec = spec
        self._context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 4 * spec['count'] + 64)
        self._empty_pss, self._empty_fds = pss_kib(), descriptors()
        kind = mesh_nodes.KINDS[spec['kind']]
        self.nodes = [
            kind(
                number,
                self._context,
                spec['url'],
                mesh_nodes.node_report(
                    number, spec['users'], spec['vms_per_user']
                ),
            )
            for number in range(spec['first'], spec['first'] + spec['count'])
        ]
        self._sequence = 0

    def heard(self, node: object) -> dict[str, int]:
        """Newest sequence number a node knows of each host."""
        if isinstance(node, mesh_nodes.ExchangeNode):
            return node.newest()
        return {host: entry[0] for host, entry in node.heard.newest.items()}

    def _publish_round(self, start_s: float, period_s: float) -> list[dict]:
        self._sequence += 1
        used = []
        for node in self.nodes:
            due_s = start_s + period_s * node.number / self._spec['total']
            time.sleep(max(0.0, due_s - time.monotonic()))
            used.append(self.heard(node))
            node.publish(self._sequence)
        return used

    def warm_up(self) -> bool:
        """Publish until everybody has heard of everybody."""
        end_s = time.monotonic() + SETTLE_S
        while time.monotonic() < end_s:
            start_s = time.monotonic()
            self._publish_round(start_s, WARM_UP_PERIOD_S)
            time.sleep(max(0.0, start_s + WARM_UP_PERIOD_S - time.monotonic()))
            known = min(len(self.heard(node)) for node in self.nodes)
            if known >= self._spec['total']:
                return True
        return False

    def measure(self, start_s: float, rounds: int, period_s: float) -> dict:
        """Publish rounds on time, and see when node 0's was used."""
        idle_cpu_s = self._idle(start_s)
        before_s = cpu_s()
        seen: dict[int, dict[int, int]] = collections.defaultdict(dict)
        first = mesh_nodes.host_name(0)
        begun = self._sequence
        for number in range(rounds):
            for node, used in zip(
                self.nodes,
                self._publish_round(start_s + number * period_s, period_s),
                strict=True,
            ):
                told = used.get(first, 0) - begun - 1
                seen[node.number].setdefault(told, number)
        time.sleep(
            max(0.0, start_s + rounds * period_s + 0.5 - time.monotonic())
        )
        return {
            'cpu_s': cpu_s() - before_s,
            'idle_cpu_s': idle_cpu_s,
            'received': self._received(),
            'rounds_until_used': self._delays(seen, rounds),
            'descriptors': descriptors() - self._empty_fds,
            'pss_kib': pss_kib() - self._empty_pss,
        }

    @staticmethod
    def _idle(until_s: float) -> float:
        """CPU time per second of idle nodes."""
        before_s, cpu_before_s = time.monotonic(), cpu_s()
        time.sleep(max(0.0, until_s - before_s))
        return (cpu_s() - cpu_before_s) / (time.monotonic() - before_s)

    def _received(self) -> list[int]:
        return [len(self.heard(node)) for node in self.nodes]

    @staticmethod
    def _delays(seen: dict, rounds: int) -> list[int]:
        """Rounds between a node's first use of a report and its sending."""
        return [
            used_in - told
            for used in seen.values()
            for told, used_in in used.items()
            if 0 <= told < rounds - 1
        ]


def main() -> None:
    """Do what the parent says."""
    worker = Worker(json.loads(sys.argv[1]))
    write_answer(addresses=[node.address for node in worker.nodes])
    addresses = read_order()['addresses']
    for node in worker.nodes:
        node.connect(addresses)
    write_answer(settled=worker.warm_up())
    order = read_order()
    write_answer(
        **worker.measure(order['start_s'], order['rounds'], order['period_s'])
    )
    read_order()
    for node in worker.nodes:
        node.stop()
    write_answer(stopped=True)


if __name__ == '__main__':
    main()
