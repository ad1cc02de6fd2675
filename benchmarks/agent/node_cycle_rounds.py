# SPDX-License-Identifier: Apache-2.0

"""The inner half of ``node_cycle.py``: runs inside the node."""

import warnings

warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import libvirt  # noqa: E402
import numpy as np  # noqa: E402
from oslo_config import cfg  # noqa: E402

from benchmarks.agent import original  # noqa: E402
from nova_fairness import plugins  # noqa: E402
from nova_fairness.agent import assembly  # noqa: E402
from nova_fairness.agent import settings  # noqa: E402
from nova_fairness.agent.round import cycle  # noqa: E402
from nova_fairness.agent.steering import controls  # noqa: E402
from nova_fairness.conf import opts  # noqa: E402
from nova_fairness.decide import policy  # noqa: E402
from nova_fairness.model import cgroup  # noqa: E402
from nova_fairness.model import defaults  # noqa: E402

PARTS = (0.0, 0.1, 1.0)

BANDWIDTH = 125e6
"""Bytes per second, because taps tell no speed."""


class AlternatingPolicy(policy.Policy):
    """Changes a fixed part of the VMs, there and back again."""

    description = 'Changes a given part of all weights in every round.'

    def __init__(self, part: float) -> None:
        self.part = part
        self._high = False

    def __call__(self, situation, previous, memory, elapsed_s):
        self._high = not self._high
        weights = np.ones_like(previous)
        count = round(self.part * len(weights))
        weights[:count] = 2.0 if self._high else 1.0
        return weights, memory


def _configuration(where: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], project='bench')
    conf.set_override('state_path', where, group='fairness')
    conf.set_override('network_bandwidth', BANDWIDTH, group='fairness_node')
    controls.prepare_helpers(())
    return conf


def _files(key: str) -> tuple[list[str], str]:
    """Name the counters of one VM and its control, as the floor reads them."""
    pid = key.split('/')[1]
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    groups = cgroup.groups_of_process(
        pathlib.Path(f'/proc/{pid}/cgroup').read_text()
    )
    found = {
        name: cgroup.directory(mounts[name], cgroup.group_of_vm(groups[name]))
        for name in ('cpu', cgroup.UNIFIED)
        if name in groups and name in mounts
    }
    unified = found[cgroup.UNIFIED]
    control = (
        found['cpu'] / 'cpu.shares'
        if 'cpu' in found
        else unified / 'cpu.weight'
    )
    return [
        str(unified / 'cpu.stat'),
        str(unified / 'cpu.pressure'),
        f'/proc/{pid}/statm',
        f'/proc/{pid}/io',
        str(control),
    ], str(control)


class MinimalRound:
    """Reads the same counters and writes the same controls, nothing else."""

    def __init__(self, keys: list[str]) -> None:
        named = [_files(key) for key in keys]
        self._reads = [
            os.open(path, os.O_RDONLY) for paths, _ in named for path in paths
        ]
        self._writes = [os.open(path, os.O_WRONLY) for _, path in named]
        self._network = os.open('/proc/net/dev', os.O_RDONLY)

    def round(self, changed: int, value: int) -> None:
        os.pread(self._network, 1 << 20, 0)
        for descriptor in self._reads:
            os.pread(descriptor, 4096, 0)
        text = str(value).encode()
        for descriptor in self._writes[:changed]:
            os.pwrite(descriptor, text, 0)

    def close(self) -> None:
        for descriptor in (*self._reads, *self._writes, self._network):
            os.close(descriptor)


def _timed(function, *arguments) -> float:
    """Wall time in microseconds."""
    start = time.perf_counter()
    function(*arguments)
    return (time.perf_counter() - start) * 1e6


def _measure_fraction(
    parts, part: float, vms: int, rounds: int, ask
) -> dict[str, object]:
    """Measure one share of changing VMs, all three ways interleaved."""
    loaded = cycle.Plugins(
        plugins.load_metric(defaults.METRIC), AlternatingPolicy(part)
    )
    parts.node_cycle.reconfigure(ask['settings'], loaded)
    for _ in range(3):
        done = parts.node_cycle.round()
    assert not done.errors, done.errors
    floor = MinimalRound([item.key for item in done.incarnations])
    ours, floors, theirs, changes = [], [], [], []
    every = max(1, rounds // ask['original_rounds'])
    for number in range(rounds):
        ours.append(_timed(lambda: changes.append(parts.node_cycle.round())))
        floors.append(
            _timed(floor.round, round(part * vms), 1024 * (1 + number % 2))
        )
        # The floor wrote too; the next round must find its own values.
        parts.node_cycle.round()
        if number % every == 0:
            theirs.append(
                _timed(original.run_round, ask['connection'], number)
            )
            parts.node_cycle.round()
    floor.close()
    written = statistics.mean(item.tally.changed for item in changes)
    row = {
        'vms': vms,
        'changed': part,
        'written_per_round': written,
        'ours_us_per_vm': statistics.median(ours) / vms,
        'original_us_per_vm': statistics.median(theirs) / vms,
        'floor_us_per_vm': statistics.median(floors) / vms,
        'rounds': rounds,
        'original_rounds': len(theirs),
    }
    newest = changes[-1]
    row['controls'] = {
        kind.value: item.works for kind, item in newest.controls.items()
    }
    row['ratio'] = row['original_us_per_vm'] / row['ours_us_per_vm']
    return row


def main() -> int:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--vms', type=int, required=True)
    parser.add_argument('--rounds', type=int, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        conf = _configuration(where)
        parts = assembly.build(conf)
        inventory = parts.cycle_parts.inventory
        inventory.start()
        inventory.wait_ready(60.0)
        found = len(inventory.incarnations())
        assert found == options.vms, f'{found} of {options.vms} VMs found'
        ask = {
            'settings': settings.from_conf(conf),
            'connection': libvirt.open('qemu:///system'),
            'original_rounds': 5,
        }
        rows = [
            _measure_fraction(parts, part, options.vms, options.rounds, ask)
            for part in PARTS
        ]
        parts.node_cycle.restore()
        inventory.stop()
    sys.stdout.write(json.dumps({'rows': rows}) + '\n')
    sys.stdout.flush()
    os._exit(0)  # the helper and libvirt's threads need no farewell


if __name__ == '__main__':
    sys.exit(main())
