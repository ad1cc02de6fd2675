# SPDX-License-Identifier: Apache-2.0


"""A host made of real files: procfs, mounts and control groups."""

import pathlib

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.model import allocation
from nova_fairness.model import resources

V1 = 'v1'
V2 = 'v2'
HYBRID = 'hybrid'


def stat_line(pid: int, ticks: int, state: str = 'S') -> str:
    """``/proc/PID/stat`` of a process with an awkward name."""
    before = ' '.join('0' for _ in range(18))
    return f'{pid} (qemu ) S (x) {state} {before} {ticks} 0 0\n'


def knob(key: str) -> allocation.Knob:
    return allocation.Knob(key, resources.ResourceControl.CPU)


def change(key: str, after: int, before: int | None = None):
    return allocation.Change(knob(key), before, after)


class FakeHost:
    """Processes and their groups below a directory."""

    def __init__(self, root: pathlib.Path, layout: str = V1) -> None:
        self.root = root
        self.proc = root / 'proc'
        self.mountinfo = root / 'mountinfo'
        self.v1 = layout in (V1, HYBRID)
        self.cpu = root / 'cgroup' / ('cpu' if self.v1 else 'unified')
        self.cpu.mkdir(parents=True)
        self.proc.mkdir()
        lines = []
        if layout in (V1, HYBRID):
            lines.append(
                f'32 31 0:29 / {root}/cgroup/cpu rw - cgroup none rw,cpu'
            )
        if layout in (V2, HYBRID):
            unified = root / 'cgroup' / 'unified'
            unified.mkdir(exist_ok=True)
            have = 'cpu io memory' if layout == V2 else ''
            (unified / 'cgroup.controllers').write_text(have + '\n')
            lines.append(f'41 31 0:38 / {unified} rw - cgroup2 none rw')
        self.mountinfo.write_text('\n'.join(lines) + '\n')

    @property
    def file_name(self) -> str:
        return 'cpu.shares' if self.v1 else 'cpu.weight'

    def start(
        self,
        pid: int,
        value: int = 1024,
        ticks: int = 500,
        group: str = '',
        state: str = 'S',
    ) -> str:
        """Start a VM; gives its incarnation's key."""
        group = group or f'/machine/qemu-{pid}-vm.libvirt-qemu'
        directory = self.cpu / group.lstrip('/')
        directory.mkdir(parents=True, exist_ok=True)
        (directory / self.file_name).write_text(f'{value}\n')
        process = self.proc / str(pid)
        process.mkdir(exist_ok=True)
        (process / 'stat').write_text(stat_line(pid, ticks, state))
        number = '3:cpu,cpuacct' if self.v1 else '0:'
        (process / 'cgroup').write_text(
            f'2:memory:/elsewhere\n{number}:{group.rstrip("/")}/emulator\n'
        )
        return f'uuid-{pid}/{pid}/{ticks}'

    def file_of(self, key: str) -> pathlib.Path:
        pid = key.split('/')[1]
        name = f'machine/qemu-{pid}-vm.libvirt-qemu'
        return self.cpu / name / self.file_name

    def value(self, key: str) -> int:
        """What the control holds, as the kernel would show it."""
        return int(self.file_of(key).read_text().split('\n')[0])

    def end(self, key: str) -> None:
        """End a VM's process; its group stays, as for a moment it does."""
        process = self.proc / key.split('/')[1]
        for item in process.iterdir():
            item.unlink()
        process.rmdir()

    def control(self, **options) -> group_control.CpuShares:
        return group_control.CpuShares(
            str(self.proc), str(self.mountinfo), **options
        )

    def let_helper_see_it(self, monkeypatch) -> None:
        """Run the privileged side in this process, on this host."""
        monkeypatch.setattr(privileged, 'PROC', str(self.proc))
        monkeypatch.setattr(privileged, 'MOUNTINFO', str(self.mountinfo))
        monkeypatch.setattr(privileged.context, 'client_mode', False)
