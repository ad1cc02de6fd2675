# SPDX-License-Identifier: Apache-2.0

"""What breaks around, or within, one agent that steers real guests.

One agent lives through all faults, in an order of chance. After each, weights
are fair again within three rounds, it has said what was wrong, and it has no
more descriptors, threads and helpers than before; after all of them a stop
gives every guest what it was found with.

Elsewhere: killed at each write (``tests/functional/test_apply_real.py``),
killed, a frozen guest, damaged state, plugins that hang or give nonsense
(``tests/functional/one_node/test_agent_real.py``).
"""

import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import textwrap
import time

import pytest

from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.nodes import processes
from tests.functional import agent_process
from tests.functional import agent_site
from tests.functional.agent_site import FOUND
from tests.functional.agent_site import names_error

pytestmark = [pytest.mark.real, pytest.mark.beside]

SEED = 14
HEALED_IN = 3
"""Rounds after which weights must be fair again."""

SPARE_DESCRIPTORS = 3
"""That may come and go with a connection."""

START = """
mkdir -p "$1" && mount -t tmpfs -o size=256k none "$1" || exit
shift; exec "$@"
"""
METRIC = 'DominantShareMetric'
LOOKS_S = 1
"""How often the agent looks for VMs anew: within each fault, too."""

PLUGINS = textwrap.dedent("""
    import sys
    import numpy as np
    from nova_fairness.measure import metric

    class Exits(metric.Metric):
        description = 'Calls exit.'
        def instances(self, demands):
            sys.exit('on purpose')

    class Allocates(metric.Metric):
        description = 'Wants more memory than there is.'
        def instances(self, demands):
            return np.frombuffer(bytearray(1 << 50))

    class Prints(metric.Metric):
        description = 'Writes where nobody should.'
        def instances(self, demands):
            print('x' * 100_000)
            raise ValueError('and fails')
""")
FOREIGN = 777
"""CPU shares that somebody else gives a guest."""

WHY = {
    'Exits': 'SystemExit',
    'Allocates': 'MemoryError',
    'Prints': 'and fails',
}


class Scene:
    """A node with its guests, and the agent that lives through it all."""

    def __init__(self, site, directory):
        self.site = site
        self.agent = agent_process.Agent(
            site.node,
            directory,
            metric=METRIC,
            metric_deadline=60,
            reconcile_interval=LOOKS_S,
        )
        self.clock = directory / 'clock'
        self.clock.write_text('+0\n')
        agent_process.write_distribution(
            self.agent.plugins, PLUGINS, list(WHY)
        )

    def start(self):
        library = next(
            pathlib.Path('/usr/lib').glob('*/faketime/libfaketimeMT.so.1')
        )
        self.agent.start(
            [
                *('unshare', '-m', 'sh', '-c', START, 'sh'),
                *(str(self.agent.state), 'env', f'LD_PRELOAD={library}'),
                f'FAKETIME_TIMESTAMP_FILE={self.clock}',
                *('FAKETIME_NO_CACHE=1', 'FAKETIME_DONT_FAKE_MONOTONIC=1'),
            ]
        )
        self.agent.await_round(agent_site.is_steered)

    def await_error(self, text, count=1):
        """Wait for rounds that complain, and whose guests are measured."""
        self.agent.await_round(
            lambda done: (
                names_error(done, text)
                and agent_site.is_measured(done, *FOUND)
            ),
            count,
        )

    def rounds_to_heal(self):
        """Wait until weights are fair and nobody complains."""
        known = len(self.agent.rounds())
        self.agent.await_round(
            lambda done: agent_site.is_steered(done) and not _has_errors(done)
        )
        for number, done in enumerate(self.agent.rounds()[known:], 1):
            if agent_site.is_steered(done) and not _has_errors(done):
                return number
        raise AssertionError

    def holds(self):
        """Descriptors, threads and helpers of the agent."""
        process = pathlib.Path('/proc', str(self.agent.pid))
        return {
            'descriptors': sum(1 for _ in (process / 'fd').iterdir()),
            'threads': sum(1 for _ in (process / 'task').iterdir()),
            'helpers': len(self.agent.helpers()),
        }

    def inside(self, *command):
        """Run something where the agent sees its state."""
        done = self.agent.node.run(
            ['nsenter', '-t', str(self.agent.pid), '-m', *command]
        )
        assert done.returncode == 0, done.stderr

    def use(self, **options):
        """Have it take other options over."""
        self.agent.configure(**options)
        self.agent.send(signal.SIGHUP)

    def libvirt(self):
        """Processes of libvirt in the node."""
        return [
            pid
            for pid in self.site.node.groups.pids()
            if _name(pid) == 'libvirtd'
        ]


def _has_errors(done):
    return done['errors'] or done['unsaved']


def _name(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()


@pytest.fixture(scope='module')
def scene(tmp_path_factory):
    with agent_site.running('chaos-a') as site:
        made = Scene(site, tmp_path_factory.mktemp('chaos'))
        count = len(site.node.groups.pids())
        try:
            made.start()
            yield made
            # Whatever happened before.
            assert made.agent.stop() == 0
            assert site.shares() == FOUND
            assert processes.wait_until(
                lambda: len(site.node.groups.pids()) <= count,
                agent_process.PATIENCE_S,
            )
        finally:
            made.agent.close()


# Faults: what a fault does, waits for and mends ------------------------------


def stop(scene):
    scene.agent.send(signal.SIGSTOP)
    try:
        time.sleep(3.4 * agent_process.INTERVAL_S)
    finally:
        scene.agent.send(signal.SIGCONT)
    scene.agent.await_round(lambda done: done['missed'] >= 2)


def step_clock(scene, seconds):
    before = scene.agent.rounds()[-1]
    scene.clock.write_text(f'{seconds:+d}\n')
    try:
        stepped = scene.agent.await_round(
            lambda done: abs(done['wall_s'] - before['wall_s'] - seconds) < 600
        )
        later = scene.agent.await_round(agent_site.is_steered, 2)
    finally:
        scene.clock.write_text('+0\n')
    for done in (stepped, later):
        assert 0 < done['interval_s'] < 30
        assert not done['errors']


def block_state(scene, text, begin, end):
    """Nobody whose values cannot be put on record is steered."""
    scene.use(exempt=domain.owner_id('user bob'))
    scene.agent.await_round(
        lambda done: (
            agent_site.applied_weights(done)['bob-1'] == FOUND['bob-1']
        )
    )
    state = str(scene.agent.state)
    scene.inside('sh', '-c', begin, 'sh', state)
    try:
        scene.use(exempt='')
        scene.await_error(text, 2)
        assert any(text in why for why in scene.agent.rounds()[-1]['unsaved'])
        assert scene.site.shares()['bob-1'] == FOUND['bob-1']
    finally:
        scene.agent.configure(exempt='')
        scene.inside('sh', '-c', end, 'sh', state)


def take_descriptors(scene):
    """Whoever is steered stays so, also after the agent has looked anew."""
    text = 'Too many open files'
    _, hard = resource.prlimit(scene.agent.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(scene.agent.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        scene.agent.await_round(
            lambda done: any(text in why for why in done['unsaved'])
        )
        known = len(scene.agent.rounds())
        looked = 2 + int(2 * LOOKS_S / agent_process.INTERVAL_S)
        scene.agent.await_round(agent_site.is_steered, looked)
        for done in scene.agent.rounds()[known:]:
            assert agent_site.applied_weights(done).keys() == FOUND.keys(), (
                done
            )
    finally:
        resource.prlimit(scene.agent.pid, resource.RLIMIT_NOFILE, (hard, hard))


def kill_libvirt(scene):
    for pid in scene.libvirt():
        os.kill(pid, signal.SIGKILL)
    try:
        scene.await_error('libvirt', 2)
    finally:
        scene.site.node.stop_libvirt()
        scene.site.node.start_libvirt()
    scene.agent.await_round(lambda done: not done['errors'])


def kill_helper(scene):
    pids = scene.agent.helpers()
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # It is started again when something is to be written.
    with scene.site.domain('bob-1') as bob:
        bob.setSchedulerParameters({'cpu_shares': FOREIGN})
    # A round that has read before may write over it and see no drift.
    assert processes.wait_until(
        lambda: scene.site.shares()['bob-1'] != FOREIGN,
        agent_process.PATIENCE_S,
    )
    assert processes.wait_until(scene.agent.helpers, agent_process.PATIENCE_S)


def use_faulty_metric(scene, metric):
    scene.use(metric=metric)
    try:
        # It may be in quarantine since another time, and not be in force.
        first = scene.agent.await_round(lambda done: names_error(done, metric))
        assert WHY[metric] in first['quarantined'][metric]
        kept = scene.site.shares()
        scene.agent.await_round(lambda done: names_error(done, metric), 2)
        assert scene.site.shares() == kept
    finally:
        scene.use(metric=METRIC)
    scene.agent.await_round(lambda done: done['metric'] == METRIC)


def start_second(scene):
    """Another agent, with a state of its own."""
    before = scene.site.shares()
    directory = scene.agent.directory / 'second'
    directory.mkdir(exist_ok=True)
    second = agent_process.Agent(scene.site.node, directory)
    refused = second.run()
    assert refused.returncode == 1, refused.stderr
    assert f'process {scene.agent.pid} of' in refused.stderr
    assert before != FOUND


FAULTS = {
    'stopped': (stop,),
    'clock back': (step_clock, -3600),
    'clock forward': (step_clock, 10**6),
    'full disk': (
        block_state,
        'No space left on device',
        'dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null; true',
        'rm "$1/fill"',
    ),
    'read-only state': (
        block_state,
        'Read-only file system',
        # Over it, since the agent has its lock open for writing.
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"',
        'umount "$1"',
    ),
    'no descriptors': (take_descriptors,),
    'libvirt killed': (kill_libvirt,),
    'helper killed': (kill_helper,),
    'second agent': (start_second,),
    **{f'plugin: {name}': (use_faulty_metric, name) for name in WHY},
}


def count_rounds_to_heal(scene, name):
    """Have a fault happen; how many rounds it took to heal."""
    fault, *arguments = FAULTS[name]
    before = scene.holds()
    fault(scene, *arguments)
    took = scene.rounds_to_heal()
    assert took <= HEALED_IN, scene.agent.rounds()[-took:]

    def leaked():
        now = scene.holds()
        spare = {'descriptors': SPARE_DESCRIPTORS, 'threads': 1}
        return {
            kind: (before[kind], count)
            for kind, count in now.items()
            if count > before[kind] + spare.get(kind, 0)
        }

    assert processes.wait_until(
        lambda: not leaked(), agent_process.PATIENCE_S
    ), leaked()
    return took


@pytest.mark.repeated
@pytest.mark.parametrize(
    'name', random.Random(SEED).sample(list(FAULTS), len(FAULTS))
)
def test_weights_are_fair_within_three_rounds_after_each_fault(
    scene, record_property, name
):
    record_property(
        'rounds', json.dumps([(name, count_rounds_to_heal(scene, name))])
    )


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(10))
def test_weights_are_fair_after_any_sequence_of_faults(
    scene, record_property, seed
):
    chosen = random.Random(seed).choices(list(FAULTS), k=12)
    took = [(name, count_rounds_to_heal(scene, name)) for name in chosen]
    record_property('rounds', json.dumps(took))
