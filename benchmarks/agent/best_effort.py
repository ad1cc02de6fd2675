# SPDX-License-Identifier: Apache-2.0

"""Loss of a VM beside five best-effort VMs that want all they can get.

Six real guests share one CPU. One of them is measured: the CPU time that it
gets when it wants all of it, and how late its program wakes when it wants a
little. The guest runs alone, beside five others with neutral weights, and
beside the same five as an agent treats preemptible servers. Agent, cluster
service, store, Redis and driver are real; Nova and Placement are not.

Holds if the VM keeps 97 % of its CPU time, and wakes late by at most half a
millisecond more on average than alone.

Run as root, alone on the machine, about four minutes::

    python -m benchmarks.agent.best_effort --out FILE

Exit code 1 if it does not hold.
"""

import argparse
from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import platform
import sys
import tempfile
import time

import libvirt

from fairness_lab.scenario import values
from fairness_lab.testbed import qemu
from fairness_lab.testbed.guests import guest as lab_guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import node as lab_node
from fairness_lab.testbed.nodes import processes
from tests.functional import agent_process
from tests.functional import share_service

TOP = pathlib.Path(__file__).resolve().parents[2]
URL = 'zmq+redis://127.0.0.1:6379/?insecure=true&host=127.0.0.1'
COMMAND = (
    'python -m benchmarks.agent.best_effort'
    ' --out benchmarks/results/best_effort.json'
)
OTHERS = 5
BOOT_S, SETTLE_S, PATIENCE_S = 120.0, 4.0, 60.0
WAKES_HZ, LITTLE = 50, 0.2
WAYS = ('alone', 'beside neutral ones', 'beside best-effort ones')
BARS = {'cpu_kept': 0.97, 'later_ms': 0.5}


class Agent(agent_process.Agent):
    """An agent that asks the cluster service who is preemptible."""

    def configure(self, **options: object) -> None:
        """Write the file."""
        super().configure(host='node-1', **options)
        text = f'[DEFAULT]\ntransport_url = {URL}\n'
        self.config.write_text(text + self.config.read_text())


@contextlib.contextmanager
def run_in_node(
    node: lab_node.TestNode, words: list[str], log: pathlib.Path
) -> Iterator[None]:
    """Run a program in the node until the block ends."""
    with log.open('w') as out:
        child = node.popen(
            words,
            stdout=out,
            stderr=out,
            cwd=TOP,
            env={**os.environ, 'PYTHONPATH': str(TOP)},
        )
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def six_guests() -> Iterator[list[lab_guest.Guest]]:
    """Six guests on one CPU of a node of their own."""
    run = qemu.begin_run(os.getpid())
    cpu = min(os.sched_getaffinity(0))
    node = lab_node.TestNode('node-1', run, image.default_cache(), [cpu])
    try:
        node.start()
        boot = image.ensure(image.default_cache())
        made = [
            lab_guest.Guest(node, values.Vm(name, name), boot)
            for name in ('calm', *(f'spare{n}' for n in range(OTHERS)))
        ]
        connection = libvirt.open(node.libvirt_uri)
        for each in made:
            each.start(connection)
        connection.close()
        for each in made:
            each.await_ready(BOOT_S)
        restrict_cpus(node)
        yield made
        for each in made:
            each.hang_up()
        node.stop()
    finally:
        qemu.finish_run(run)


def restrict_cpus(node: lab_node.TestNode) -> None:
    """Leave the guests one CPU, and the agent all that there are."""
    for directory in node.groups.directories():
        machine = directory / 'machine'
        for path in sorted([machine, *machine.rglob('*')], reverse=True):
            cpus = path / 'cpuset.cpus'
            if path.is_dir() and cpus.exists():
                cpus.write_text(str(node.cpus[0]))


@contextlib.contextmanager
def run_agent(
    made: list[lab_guest.Guest], where: pathlib.Path
) -> Iterator[Agent]:
    """An agent by which all guests but the first are best effort."""
    node, servers = made[0].node, where / 'preemptible'
    servers.write_text('\n'.join(each.uuid for each in made[1:]))
    shares, log = where / 'shares.yaml', where / 'service.log'
    shares.write_text('accounts: []\n')
    words = [sys.executable, '-m', 'tests.functional.share_service']
    with (
        run_in_node(
            node,
            ['redis-server', '--save', '', '--dir', str(where)],
            where / 'redis.log',
        ),
        run_in_node(
            node, [*words, URL, str(where), str(shares), str(servers)], log
        ),
    ):
        if not processes.wait_until(
            lambda: share_service.READY in log.read_text(), PATIENCE_S
        ):
            raise SystemExit(f'no cluster service: {log.read_text()}')
        agent = Agent(node, where, 9583, best_effort=True, interval=1)
        agent.start()
        try:
            agent.await_round(
                lambda done: (
                    sum(
                        each['applied'].get('cpu') == 0
                        for each in done['instances']
                    )
                    == OTHERS
                )
            )
            yield agent
        finally:
            agent.close()


def measure_first_guest(
    made: list[lab_guest.Guest], others: float, seconds: float
) -> dict[str, float]:
    """Measure the first guest while it wants all, then a little.

    :param others: CPUs that each other guest wants.
    """
    calm, found = made[0], {}
    for each in made[1:]:
        each.command(f'cpu {others:g}')
    for name, load in (('busy', 1.0), ('calm', LITTLE)):
        calm.command(f'cpu {load:g}')
        calm.command(f'wake {WAKES_HZ if name == "calm" else 0}')
        time.sleep(SETTLE_S)
        before, used = dict(calm.line.report), calm.cpu_seconds()
        begin = time.monotonic()
        time.sleep(seconds)
        lasted = time.monotonic() - begin
        after = dict(calm.line.report)
        found[f'{name}_cpus'] = (calm.cpu_seconds() - used) / lasted
        wakes = after['wakes'] - before['wakes']
        if wakes:
            late_us = after['late_us'] - before['late_us']
            very_late = after['late_20ms'] - before['late_20ms']
            found['late_ms'] = late_us / wakes / 1000
            found['late_20ms_part'] = very_late / wakes
    for each in made:
        each.command('cpu 0')
    return found


def effect_metrics(agent: Agent) -> dict[str, float]:
    """Effect of weights as the agent reports it."""
    lines = agent.get('/metrics').splitlines()
    wanted = ('control_effect_ratio', 'control_works_bool{control="cpu"}')
    return {
        line.rpartition(' ')[0].removeprefix('nova_fairness_'): float(
            line.rpartition(' ')[2]
        )
        for line in lines
        if line.startswith(tuple(f'nova_fairness_{name}' for name in wanted))
    }


def main() -> int:
    """Measure, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--seconds', type=float, default=15.0)
    options = parser.parse_args()
    rows, told = {}, {}
    with tempfile.TemporaryDirectory(dir='/var/tmp') as directory:
        where = pathlib.Path(directory)
        with six_guests() as made:
            rows[WAYS[0]] = measure_first_guest(made, 0.0, options.seconds)
            rows[WAYS[1]] = measure_first_guest(made, 1.0, options.seconds)
            with run_agent(made, where) as agent:
                rows[WAYS[2]] = measure_first_guest(made, 1.0, options.seconds)
                told = effect_metrics(agent)
    alone, last = rows[WAYS[0]], rows[WAYS[2]]
    kept = last['busy_cpus'] / alone['busy_cpus']
    later_ms = last['late_ms'] - alone['late_ms']
    passed = kept >= BARS['cpu_kept'] and later_ms <= BARS['later_ms']
    result = {
        'command': COMMAND,
        'machine': {'kernel': platform.release(), 'cpus': os.cpu_count()},
        'guests': {'others': OTHERS, 'accelerator': 'tcg'},
        'load': {'wakes_per_s': WAKES_HZ, 'calm_cpus': LITTLE},
        'seconds': options.seconds,
        'rows': rows,
        'cpu_kept': kept,
        'later_ms': later_ms,
        'bars': BARS,
        'told': told,
        'passed': passed,
    }
    options.out.write_text(json.dumps(result, indent=1) + '\n')
    print(json.dumps(result, indent=1))
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main())
