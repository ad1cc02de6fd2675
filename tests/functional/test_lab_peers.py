# SPDX-License-Identifier: Apache-2.0

"""Real agents on real nodes that lose each other and find each other.

No guests run: what is watched is of which CPUs each agent knows.
"""

import dataclasses
import json
import os

import pytest

from fairness_lab.results import recording
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.testbed import qemu
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import agent
from fairness_lab.testbed.nodes import node
from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.nodes import wiring

pytestmark = pytest.mark.real

PATIENCE_S = 60
INTERVAL_S = 0.5
NAMES = ('node1', 'node2')


@dataclasses.dataclass
class Peers:
    """Two nodes, what is between them, and what their agents know."""

    wires: wiring.Wiring
    agents: agent.NodeAgents
    out: object

    def known(self, name):
        """Number of CPUs that an agent knows of, by its newest round."""
        path = self.out / name / recording.ROUNDS
        if not path.is_file():
            return None
        lines = path.read_text().rpartition('\n')[0].splitlines()
        entry = json.loads(lines[-1]) if lines else {}
        if 'supply' not in entry:
            return None
        own = entry['node']['speed_factor'] * entry['interval_s']
        return round(entry['supply']['cpu_time'] / own, 2)

    def come_to_know(self, *expected):
        """Wait until each agent knows of so many CPUs."""
        return processes.wait_until(
            lambda: tuple(map(self.known, NAMES)) == expected, PATIENCE_S
        )


@pytest.fixture(scope='module')
def peers(tmp_path_factory):
    cpu = min(os.sched_getaffinity(0))
    out = tmp_path_factory.mktemp('agents')
    found = reader.find('two-nodes-cpu', programs.LABORATORY)
    nodes = {
        name: dataclasses.replace(spec, cpu_numbers=(cpu,))
        for name, spec in found.nodes.items()
    }
    scenario = dataclasses.replace(found, nodes=nodes, interval_s=INTERVAL_S)
    run = qemu.begin_run(os.getpid())
    wires = wiring.Wiring(run, redis=True)
    made = Peers(wires, agent.NodeAgents(INTERVAL_S), out)
    running = []
    try:
        wires.open()
        owned = agent.make_keys(run, NAMES)
        for index, name in enumerate(NAMES):
            there = node.TestNode(
                name, run, image.default_cache(), (cpu,), index
            )
            there.start()
            running.append(there)
            wires.link(there)
            options = agent.configuration(
                scenario, name, out / name, owned[name]
            )
            made.agents.add(name, agent.NodeAgent(there, out / name, options))
        made.agents.start(NAMES, wait=True)
        yield made
        made.agents.close()
    finally:
        for there in running:
            there.stop()
        wires.close()
        qemu.finish_run(run)


@pytest.fixture(autouse=True)
def whole(peers):
    """Every test begins and ends with agents that know each other."""
    assert peers.come_to_know(2, 2)
    yield
    assert peers.come_to_know(2, 2)


def test_agents_without_links_know_only_their_own_node(peers):
    peers.wires.cut('node2')
    assert peers.come_to_know(1, 1)
    peers.wires.heal('node2')


def test_an_agent_stopped_by_a_signal_is_left_out(peers):
    peers.agents.hold(['node2'])
    assert peers.come_to_know(1, 2)
    peers.agents.release(['node2'])


def test_an_agent_that_was_killed_is_left_out_until_it_starts(peers):
    peers.agents.stop(['node2'], kill=True)
    assert peers.come_to_know(1, 2)
    peers.agents.start(['node2'], wait=True)


def test_an_agent_is_restarted(peers):
    before = peers.agents.rounds('node1')
    peers.agents.restart('node1')
    log = peers.out / 'node1' / 'agent.log'
    assert processes.wait_until(
        lambda: 'Stopped;' in log.read_text(), PATIENCE_S
    )
    assert processes.wait_until(
        lambda: peers.agents.rounds('node1') > before + 5, PATIENCE_S
    )


@pytest.mark.parametrize(
    ('away', 'back'), [('freeze', 'thaw'), ('kill', 'start')]
)
def test_agents_that_know_each_other_need_no_redis(peers, away, back):
    redis = peers.wires.redis()
    getattr(redis, away)()
    before = {name: peers.agents.rounds(name) for name in NAMES}
    # longer than a report counts that is not renewed
    assert processes.wait_until(
        lambda: all(peers.agents.rounds(n) > before[n] + 8 for n in NAMES),
        PATIENCE_S,
    )
    assert [peers.known(name) for name in NAMES] == [2, 2]
    getattr(redis, back)()
    assert processes.wait_until(redis.answers, PATIENCE_S)


def test_agents_register_again_with_a_redis_that_forgot_them(peers):
    redis = peers.wires.redis()
    assert processes.wait_until(lambda: redis.keys() > 0, PATIENCE_S)
    redis.flush()
    assert processes.wait_until(lambda: redis.keys() > 0, PATIENCE_S)
    peers.agents.stop(['node2'], kill=True)
    assert peers.come_to_know(1, 2)
    peers.agents.start(['node2'], wait=True)
