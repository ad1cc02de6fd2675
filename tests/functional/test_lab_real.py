# SPDX-License-Identifier: Apache-2.0

"""Whole runs of the laboratory on real guests, and how they end."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import hub
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import processes
from fairness_lab.testbed.nodes import redis_server

pytestmark = pytest.mark.real
pytest_plugins = ('tests.fixtures.lab',)

PATIENCE_S = 240

SCENARIO = """\
description: three VMs of two users
duration: 60
interval: 1
settle: 0
nodes:
  node1: {{cpus: [{cpu}], network_mbit_s: 100, uplink: true}}
vms:
  a: {{user: alice, count: 2, disks: [{{size_mib: 16}}], nics: 1}}
  b: {{user: bob}}
load:
  a: [{{at: 0, cpu: max, disk_write_mib_s: 1, net_send_mbit_s: 1}}]
  b: [{{at: 0, cpu: max}}]
"""


MOVING = """\
description: a VM moves to a node that is empty
duration: 30
interval: 1
settle: 0
nodes:
  node1: {{cpus: [{cpu}]}}
  node2: {{cpus: [{cpu}]}}
vms:
  a: {{user: alice, node: node1}}
  b: {{user: bob, node: node1}}
load:
  a: [{{at: 0, cpu: 0.2}}]
  b: [{{at: 0, cpu: 0.2}}]
events:
  - {{at: 5, move: a, to: node2}}
"""


@pytest.fixture
def start(tmp_path):
    """Start a run of the scenario; it is killed if the test leaves it."""
    started = []

    def begin(*options, text=SCENARIO):
        path = tmp_path / 'small.yaml'
        cpu = min(os.sched_getaffinity(0))
        path.write_text(text.format(cpu=cpu))
        command = [
            *(sys.executable, '-m', 'fairness_lab.cmd.lab', 'run'),
            *(str(path), '--out', str(tmp_path / 'out'), *options),
        ]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield begin
    for child in started:
        child.kill()
        child.wait()
        child.stderr.close()
    qemu.remove_dead_runs()


def run_of(child):
    """Directory of a process's run; ``None`` if it has none."""
    for path in qemu.STATE.glob('r*/owner.json'):
        if json.loads(path.read_text())['pid'] == child.pid:
            return path.parent
    return None


def await_load(child, tmp_path):
    """Wait until guests are loaded; give the run and its processes."""
    rows = tmp_path / 'out' / 'instances.csv'
    loaded = processes.wait_until(
        lambda: (
            child.poll() is not None
            or (rows.is_file() and rows.read_text().count('\n') > 6)
        ),
        PATIENCE_S,
    )
    assert loaded
    assert child.poll() is None, child.stderr.read()
    run = run_of(child)
    pids = groups.NodeGroups(run.name, 'node1').pids()
    return run, known(pids)


def known(pids):
    """Identify processes; a short-lived one may have ended meanwhile."""
    found = [processes.identify(pid) for pid in pids]
    return [identity for identity in found if identity is not None]


def remains(run, identities):
    """Everything of a run that is still there."""
    return [
        *(item for item in identities if processes.is_alive(item)),
        *(name for name in groups.runs_with_groups() if name == run.name),
        *(path for path in [run] if path.exists()),
    ]


def interfaces_here():
    """Interfaces of the machine itself."""
    return set(pathlib.Path('/sys/class/net').iterdir())


# The quick test is that of two nodes.
@pytest.mark.slow
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(start, tmp_path, number):
    interfaces = interfaces_here()
    child = start()
    run, identities = await_load(child, tmp_path)
    assert len(identities) >= 5, 'holder, libvirtd and three guests'
    child.send_signal(number)
    assert child.wait(PATIENCE_S) == 130
    assert remains(run, identities) == []
    assert interfaces_here() <= interfaces


def test_an_interrupted_run_of_two_nodes_leaves_nothing(start, tmp_path):
    interfaces = interfaces_here()
    child = start(text=MOVING)
    run, _ = await_load(child, tmp_path)
    between = groups.processes_below(
        [
            item.path / groups.NodeGroups(run.name, name).relative
            for name in (hub.NAME, redis_server.NAME)
            for item in groups.mounted()
        ]
    )
    identities = known(between)
    assert len(identities) >= 3, 'two networks and a Redis'
    child.send_signal(signal.SIGINT)
    assert child.wait(PATIENCE_S) == 130
    assert remains(run, identities) == []
    assert interfaces_here() <= interfaces


def test_remains_of_a_killed_run_are_removed_at_the_next_start(
    start, tmp_path
):
    child = start('--no-agents')
    run, identities = await_load(child, tmp_path)
    child.kill()
    child.wait(PATIENCE_S)
    assert remains(run, identities), 'a killed run cannot clean up'
    assert run.name in qemu.remove_dead_runs()
    assert remains(run, identities) == []


def cpu_weights():
    """CPU weights of the laboratory, in weights of other groups."""
    neutral = {'cpu.shares': 1024, 'cpu.weight': 100}
    return {
        int(file.read_text()) / neutral[file.name]
        for item in groups.mounted()
        for file in (item.path / groups.TOP).glob('cpu.*')
        if file.name in neutral
    }


def test_a_second_start_leaves_a_live_run_alone(start, tmp_path):
    child = start('--no-agents', '--cpu-weight=2.5')
    run, identities = await_load(child, tmp_path)
    assert cpu_weights() == {2.5}
    assert run.name not in qemu.remove_dead_runs()
    assert all(processes.is_alive(item) for item in identities)


def test_a_run_fails_if_an_agent_does_not_start(start, tmp_path):
    text = SCENARIO + 'agent: {{fairness: {{interval: never}}}}\n'
    child = start(text=text)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 1
    assert 'the agent of node node1 ended' in said
    assert 'never' in said
    assert run_of(child) is None


def rounds_of(out, node):
    path = out / 'agents' / node / 'rounds.jsonl'
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_moved_vm_keeps_its_uuid_and_its_owner(start, tmp_path):
    interfaces = interfaces_here()
    child = start(text=MOVING)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, said
    out = tmp_path / 'out'
    before = rounds_of(out, 'node1')[0]['instances']
    after = {
        node: rounds_of(out, node)[-1]['instances']
        for node in ('node1', 'node2')
    }
    assert {vm['name'] for vm in before} == {'a', 'b'}
    assert [vm['name'] for vm in after['node1']] == ['b']
    assert [vm['name'] for vm in after['node2']] == ['a']
    there = next(vm for vm in before if vm['name'] == 'a')
    for field in ('uuid', 'user', 'project', 'vcpus'):
        assert after['node2'][0][field] == there[field]
    result = json.loads((out / 'result.json').read_text())
    stays = result['instances']['a']['stays']
    assert [stay['node'] for stay in stays] == ['node1', 'node2']
    assert result['nodes']['node2']['known_part'] == pytest.approx(1)
    assert interfaces_here() <= interfaces


# That equal weights give equal parts is shown by check_scopes.py, and that a
# run without agents has none by test_lab_scenarios.py.
@pytest.mark.slow
def test_without_agents_all_vms_get_equal_cpu_time(tmp_path):
    out = tmp_path / 'out'
    command = [
        *(sys.executable, '-m', 'fairness_lab.cmd.lab', 'run'),
        *('one-node-cpu', '--no-agents', '--duration', '20'),
        *('--out', str(out)),
    ]
    done = subprocess.run(command, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0
    result = json.loads((out / 'result.json').read_text())
    assert result['backend'] in {'qemu-tcg', 'qemu-kvm'}
    parts = {n: v['cpu_share'] for n, v in result['instances'].items()}
    assert parts == pytest.approx(dict.fromkeys(parts, 1 / 3), abs=0.04)


def test_a_guest_runs_the_ordered_load(lab_guest):
    guest = lab_guest(
        'web', 'alice', disks=(scenario_module.GuestDisk(16),), nics=1
    )
    guest.command('report')
    before = guest.line.report
    guest.command('disk-write 1048576')
    guest.command('disk-read 2097152')
    guest.command(f'net-send 14000 10.78.0.1 {namespace.SINK_PORT}')
    guest.command('cpu-work 200')
    guest.command('report')
    after = guest.line.report
    changes = {name: after[name] - before[name] for name in before}
    assert changes['written'] == 1048576
    assert changes['read'] == 2097152
    assert changes['sent'] == 14000
    assert changes['work'] == 200
    assert guest.cpu_seconds() > 0


def test_a_frozen_guest_stands_still_until_it_is_thawed(lab_guest):
    guest = lab_guest('web', 'alice')
    guest.freeze()
    state = pathlib.Path(f'/proc/{guest.pid}/stat')
    assert processes.wait_until(
        lambda: state.read_text().rpartition(')')[2].split()[0] == 'T', 10
    )
    guest.thaw()
    assert guest.command('cpu-work 1')[0] == '1'
