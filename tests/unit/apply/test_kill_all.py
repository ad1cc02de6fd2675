# SPDX-License-Identifier: Apache-2.0

"""Killed at any moment, several controls can all be restored."""

import functools
import shutil

import pytest

from nova_fairness.apply import applier as appliers
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import files
from nova_fairness.apply.cgroup import memory
from nova_fairness.model import resources
from tests.fixtures import effort
from tests.unit.apply import fake_groups
from tests.unit.apply import killed
from tests.unit.apply import test_disk

MEMORY = resources.ResourceControl.MEMORY
BLKIO = resources.ResourceControl.DISK
FILES = {
    'v1': ('memory.soft_limit_in_bytes', 'blkio.bfq.weight'),
    'v2': ('memory.low', 'io.bfq.weight'),
}
MIB = 1 << 20


def first_value(content):
    return content.split('\n')[0].removeprefix('default ')


class Agent:
    """Lives of an agent that steers memory and disks of two VMs."""

    def __init__(self, root, version, monkeypatch):
        self.root = root
        self.version = version
        self.monkeypatch = monkeypatch
        self.begin_anew()
        self.found = self.values()

    def begin_anew(self):
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.host = fake_groups.FakeGroups(self.root, self.version)
        monkeypatch = self.monkeypatch
        monkeypatch.setattr(privileged, 'PROC', str(self.host.proc))
        monkeypatch.setattr(privileged, 'MOUNTINFO', str(self.host.mountinfo))
        monkeypatch.setattr(privileged.context, 'client_mode', False)
        self.keys = [self.host.start(number) for number in (1, 2)]
        # What was found differs from what the kernel sets in a new group.
        for place, key in enumerate(self.keys):
            for file, unit in zip(FILES[self.version], (MIB, 1), strict=True):
                path = self.host.path(key, file)
                first, _, rest = path.read_text().partition('\n')
                before = 'default ' if 'default' in first else ''
                path.write_text(f'{before}{(70 + place) * unit}\n{rest}')

    def values(self):
        """What each file of any group says."""
        return {
            str(path.relative_to(self.root)): first_value(path.read_text())
            for file in FILES[self.version]
            for path in self.root.rglob(file)
        }

    def record(self, name):
        record = found_values.FoundValues(self.root / 'state' / name, 'boot')
        assert record.load() == ''
        return record

    def start(self):
        records = [self.record(name) for name in ('f', 'groups', 'disks')]
        found, shared, chosen = records
        options = {
            'proc': str(self.host.proc),
            'mountinfo_path': str(self.host.mountinfo),
        }
        sample = test_disk.sample({key: ['8:0'] for key in self.keys})
        controls = [
            memory.MemoryProtection(shared, **options),
            disk.DiskWeight(chosen, lambda: sample, **options),
        ]
        running = functools.partial(files.is_running, str(self.host.proc))
        return appliers.Applier(controls, found, running), records

    def steer(self, applier, value):
        applier.read_values(self.keys)
        changes = [
            fake_groups.change(key, kind, (value + place) * unit)
            for place, key in enumerate(self.keys)
            for kind, unit in ((MEMORY, MIB), (BLKIO, 1))
        ]
        assert all(item.written for item in applier.apply(changes))

    def stop(self, applier, records):
        applier.read_values(self.keys)
        assert all(item.written for item in applier.restore())
        assert applier.problems() == ()
        for record in records:
            record.close()

    def whole_life(self):
        applier, records = self.start()
        self.steer(applier, 200)
        self.steer(applier, 300)
        self.stop(applier, records)

    def start_and_stop(self):
        self.stop(*self.start())


@pytest.mark.parametrize(
    'version', ['v2', pytest.param('v1', marks=pytest.mark.slow)]
)
def test_killed_at_any_system_call_then_started_and_stopped(
    tmp_path, monkeypatch, version
):
    agent = Agent(tmp_path / 'node', version, monkeypatch)
    steered = 0
    for at in killed.moments(agent.whole_life, agent.begin_anew):
        steered += agent.values() != agent.found
        assert killed.run(agent.start_and_stop)
        assert agent.values() == agent.found, f'killed at {at}'
    # A life that was never killed while it steered would prove nothing.
    assert steered > effort.count_to_try(20, killed.QUICK_STEP)
