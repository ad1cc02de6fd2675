# SPDX-License-Identifier: Apache-2.0

"""Cost of a round, beside the original's calls in the same run.

Starts real paused guests on a node of their own and runs, interleaved, whole
rounds of this package (all five rooms, with the privileged helper), rounds as
the original did them (``original.py``), and the floor: the same counters read
and the changed controls written with bare system calls. Then the agent
itself runs as an operator runs it, and its processes are measured.

Run as root::

    python -m benchmarks.agent.node_cycle --out FILE
"""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import node as lab_node

TOP = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = (
    *('env', f'PYTHONPATH={TOP}', sys.executable),
    *('-m', 'benchmarks.agent.node_cycle_rounds'),
)
"""Programs of a node have another working directory."""

MEMORY_KIB = 65536


def domain_xml(number: int, disk: pathlib.Path) -> str:
    """Describe a paused guest: one vCPU, one disk, one tap, a balloon."""
    uuid = f'00000000-0000-4000-8000-{number:012d}'
    user = f'user-{number % 10}'
    return f"""
<domain type='qemu'>
  <name>bench-{number}</name><uuid>{uuid}</uuid>
  <metadata>
    <nova:instance
        xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
      <nova:name>bench-{number}</nova:name>
      <nova:flavor name="bench"><nova:memory>64</nova:memory>
        <nova:vcpus>1</nova:vcpus></nova:flavor>
      <nova:owner><nova:user uuid="{user}">{user}</nova:user>
        <nova:project uuid="{user}-p">{user}-p</nova:project></nova:owner>
    </nova:instance>
  </metadata>
  <memory unit='KiB'>{MEMORY_KIB}</memory><vcpu>1</vcpu>
  <os><type arch='x86_64'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none'/>
      <source file='{disk}'/><target dev='vda' bus='virtio'/>
    </disk>
    <interface type='bridge'>
      <source bridge='br0'/><model type='virtio'/>
    </interface>
    <memballoon model='virtio'/>
  </devices>
</domain>"""


def run_inner_half(
    node: lab_node.TestNode,
    *arguments: str,
    command: Sequence[str] = ROUNDS,
) -> dict[str, object]:
    """Output of ``node_cycle_rounds.py``, run in the node.

    :param command: that runs it.
    """
    done = node.run([*command, *arguments], timeout_s=3600.0)
    if done.returncode:
        raise SystemExit(f'rounds failed:\n{done.stdout}{done.stderr}')
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def start_guests(
    node: lab_node.TestNode, present: int, count: int, where: pathlib.Path
) -> None:
    """Bring the number of guests to ``count``; they stay paused."""
    import libvirt

    connection = libvirt.open(node.libvirt_uri)
    for number in range(present, count):
        disk = where / f'{number}.raw'
        disk.touch()
        os.truncate(disk, 2**20)
        connection.createXML(
            domain_xml(number, disk), libvirt.VIR_DOMAIN_START_PAUSED
        )
    connection.close()


def _pss_kib(pid: int) -> int:
    text = pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text()
    return int(text.split('Pss:')[1].split()[0])


def _cpu_s(pid: int) -> float:
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text()
    numbers = fields.rsplit(')', 1)[1].split()
    ticks = sum(int(numbers[place]) for place in (11, 12, 13, 14))
    return ticks / os.sysconf('SC_CLK_TCK')


def _processes(conf: pathlib.Path) -> list[int]:
    """Agent and its helpers, which are no children of it."""
    agents, helpers = [], []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = path.read_bytes().split(b'\0')
            where = (path.parent / 'ns/net').readlink()
        except OSError:
            continue
        if any(word.endswith(b'/nova-fairness') for word in words):
            if str(conf).encode() in words:
                agents.append((int(path.parent.name), where))
        elif any(
            word.endswith(b'/nova-fairness-privileged') for word in words
        ):
            helpers.append((int(path.parent.name), where))
    nodes = {where for _, where in agents}
    return sorted(pid for pid, where in (*agents, *helpers) if where in nodes)


def _daemon(node: lab_node.TestNode) -> int:
    return int(node.run(['cat', '/run/libvirtd.pid']).stdout)


AGENT_CONF = """
[fairness]
host = bench
interval = 10
metric = GreedinessMetric
policy = thesis
state_path = {state}
[fairness_node]
network_bandwidth = 125000000
[fairness_observe]
prometheus_port = 0
"""


def agent_cost(
    node: lab_node.TestNode,
    window_s: float,
    where: pathlib.Path,
    python: str = sys.executable,
) -> dict[str, float]:
    """Run the agent as an operator does; measure it, its helper, libvirt."""
    conf = where / 'agent.conf'
    conf.write_text(AGENT_CONF.format(state=where / 'state'))
    daemon = _daemon(node)
    idle_before = _cpu_s(daemon)
    time.sleep(window_s)
    idle_s = _cpu_s(daemon) - idle_before
    log = (where / 'agent.log').open('wb')
    executable = pathlib.Path(python).with_name('nova-fairness')
    agent = node.popen(
        [str(executable), '--config-file', str(conf)], stdout=log, stderr=log
    )
    time.sleep(25)  # start-up and the first rounds are not the steady state
    tree = _processes(conf)
    assert len(tree) == 3, 'expected an agent and its two helpers'
    before = sum(_cpu_s(pid) for pid in tree)
    daemon_before = _cpu_s(daemon)
    time.sleep(window_s)
    used_s = sum(_cpu_s(pid) for pid in tree) - before
    daemon_s = max(0.0, _cpu_s(daemon) - daemon_before - idle_s)
    pss = [_pss_kib(pid) / 1024 for pid in tree]
    agent.terminate()
    agent.wait(60)
    return {
        'interval_s': 10.0,
        'window_s': window_s,
        'agent_and_helper_cpu_s': used_s,
        'libvirtd_caused_cpu_s': daemon_s,
        'cpu_percent': 100 * (used_s + daemon_s) / window_s,
        'agent_pss_mib': max(pss),
        'tree_pss_mib': sum(pss),
        'processes': len(tree),
    }


@contextlib.contextmanager
def one_node() -> Iterator[tuple[lab_node.TestNode, pathlib.Path]]:
    """A node without guests, and a directory for what belongs to them."""
    qemu.remove_dead_runs()
    run = qemu.begin_run(os.getpid())
    with tempfile.TemporaryDirectory(dir='/var/tmp') as directory:
        where = pathlib.Path(directory)
        node = lab_node.TestNode('bench', run, where / 'cache', (0, 1))
        node.start()
        try:
            yield node, where
        finally:
            node.stop()
            qemu.finish_run(run)


def measure(options: argparse.Namespace) -> dict[str, object]:
    """Run everything on one node."""
    rows: list[object] = []
    present = 0
    with one_node() as (node, where):
        for count in options.vms:
            start_guests(node, present, count, where)
            present = count
            done = run_inner_half(
                node, '--vms', str(count), '--rounds', str(options.rounds)
            )
            rows.extend(done['rows'])  # type: ignore[arg-type]
            for row in done['rows']:  # type: ignore[attr-defined]
                print(json.dumps(row), flush=True)
        agent = agent_cost(node, options.window, where)
    return {'rows': rows, 'agent': {'vms': present, **agent}}


def main() -> int:
    """Run the benchmark and write its result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--vms', type=int, nargs='+', default=[1, 10, 50, 100])
    parser.add_argument('--rounds', type=int, default=30)
    parser.add_argument(
        '--window',
        type=float,
        default=120.0,
        help='seconds for which the agent is measured',
    )
    options = parser.parse_args()
    result = {
        'version': 1,
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'kernel': platform.release(),
            'cpus': os.cpu_count(),
            'python': platform.python_version(),
        },
        **measure(options),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + '\n')
    print(json.dumps(result['agent'], indent=2))
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as error:
        sys.exit(f'node_cycle: {error}')
