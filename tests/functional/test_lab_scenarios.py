# SPDX-License-Identifier: Apache-2.0

"""The scenarios on real guests, with the checks that they must pass.

The fast set and the longer one run at short intervals, the whole set as the
scenarios say; only the fast set is not marked ``slow``. ``nova-fairness-lab
run`` fails if a check does not pass.
"""

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(2700)]

THESIS = ('--metric', 'GreedinessMetric', '--policy', 'thesis')

FAST = {
    'two users get the same with the default policy': (
        'one-node-cpu',
        '--interval=0.5',
        '--duration=40',
    ),
}

LONGER = {
    'the light user gets about twice as much with the original': (
        'one-node-cpu',
        '--interval=0.5',
        '--duration=20',
        *THESIS,
    ),
    'a lone VM gets everything': ('spike', '--interval=1', '--duration=48'),
    'a closed loop tells what it wants, and an open one does not': (
        'kinds-of-load',
        '--no-agents',
        '--duration=40',
    ),
    'a single VM that waits is contention': (
        'one-waits',
        '--interval=1',
        '--duration=40',
    ),
    'users of VMs that are never always busy get the same': (
        'closed-loops',
        '--interval=1',
        '--duration=60',
    ),
    'guests get of a disk what fio gets with the same weights': (
        'one-node-disk',
        '--interval=1',
        '--duration=40',
    ),
    'a frozen guest disturbs no other': (
        'frozen-guest',
        '--interval=1',
        '--duration=60',
    ),
    'VMs and agents come and go': ('churn', '--interval=1', '--duration=100'),
    'an agent that stands still is left out for a while': (
        'silent-peer',
        '--interval=1',
        '--duration=50',
    ),
    'an agent that starts late is taken in': (
        'late-joiner',
        '--interval=1',
        '--duration=45',
    ),
}
"""Quick tests show it part by part: ``test_agent_real.py`` that a frozen guest
costs nobody a round, that VMs come and go and that an agent goes on where a
killed one ended; ``test_lab_peers.py`` that an agent which stands still, or
ended, is left out until it is back; ``test_lab_real.py`` that a VM moves;
``test_lab_disk.py`` that guests' reads follow the weights of a disk;
``tests/unit/fairness_lab/node_sim/test_loops.py`` that closed loops get the
same."""

WHOLE = {
    'one node, without an agent': ('one-node-cpu', '--no-agents'),
    'one node, default policy': ('one-node-cpu', '--duration=180'),
    'one node, default policy, default interval': (
        'one-node-cpu',
        '--interval=10',
        '--duration=360',
    ),
    'one node, original': ('one-node-cpu', *THESIS),
    'spike': ('spike',),
    'many against one': ('many-against-one',),
    'one busy VM among many': ('unlike-vms',),
    'one VM waits among many, without an agent': ('one-waits', '--no-agents'),
    'one VM waits among many': ('one-waits',),
    'VMs as wide as their node': ('wide-vms',),
    'closed loops': ('closed-loops',),
    'uncontended, 10 s': ('uncontended',),
    'uncontended, 1 s': ('uncontended', '--interval=1', '--duration=302.5'),
    'churn': ('churn',),
    'frozen guest': ('frozen-guest',),
    'two nodes, without agents': ('two-nodes-cpu', '--no-agents'),
    'two nodes, dominant share': ('two-nodes-cpu',),
    'two nodes, greediness': ('two-nodes-cpu', '--metric=GreedinessMetric'),
    'two nodes, original': ('two-nodes-cpu', *THESIS),
    'silent peer': ('silent-peer',),
    'killed peer': ('killed-peer',),
    'Redis away': ('redis-away',),
    'Redis flushed': ('redis-flushed',),
    'node cut off': ('cut-node',),
    'late joiner': ('late-joiner',),
    'rolling restart': ('rolling-restart',),
    'disk of one node': ('one-node-disk',),
    'CPU and disk of two nodes, without agents': (
        'two-nodes-cpu-disk',
        '--no-agents',
    ),
    'CPU and disk of two nodes': ('two-nodes-cpu-disk',),
    'uplink of one node': ('one-node-network',),
    'uplink of one node, unequal users': ('one-node-network-weighted',),
    'latency, without an agent': ('latency', '--no-agents'),
    'latency': ('latency',),
}


def run(out, *arguments):
    """Run a scenario; give its result, or fail with what it printed."""
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'fairness_lab.cmd.lab',
            'run',
            *arguments,
            # Other tests may run at the same time.
            '--cpu-weight=100',
            f'--out={out}',
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
    return json.loads((out / 'result.json').read_text())


def assert_judged(result):
    assert result['checks']
    assert result['backend'].startswith('qemu-')
    assert (result['rounds'] > 0) is result['agents']


@pytest.mark.parametrize('arguments', FAST.values(), ids=FAST)
def test_a_short_scenario_passes_its_checks(tmp_path, arguments):
    assert_judged(run(tmp_path / 'out', *arguments))


@pytest.mark.slow
@pytest.mark.parametrize('arguments', LONGER.values(), ids=LONGER)
def test_a_longer_scenario_passes_its_checks(tmp_path, arguments):
    assert_judged(run(tmp_path / 'out', *arguments))


@pytest.mark.slow
@pytest.mark.parametrize('arguments', WHOLE.values(), ids=WHOLE)
def test_a_whole_scenario_passes_its_checks(tmp_path, arguments):
    assert_judged(run(tmp_path / 'out', *arguments))
