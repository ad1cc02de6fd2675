# SPDX-License-Identifier: Apache-2.0

"""A process file system and control groups of regular files."""

import contextlib
import dataclasses
import pathlib
import resource

from nova_fairness.model import instance

STAT = (
    '{pid} (qemu) S 1 1 1 0 -1 0 1 0 0 0 {user} {system}'
    ' 0 0 20 0 5 0 {start} 1 1'
)
NET_HEAD = 'Inter-|\n face |\n'
UUID = '00000000-0000-4000-8000-{:012d}'


@dataclasses.dataclass
class FakeKernel:
    """Files below ``root`` that look like the kernel's."""

    root: pathlib.Path

    def __post_init__(self):
        (self.proc / 'self').mkdir(parents=True)
        (self.proc / 'net').mkdir()
        self.set_interfaces({})
        self.mount_v2()

    @property
    def proc(self):
        return self.root / 'proc'

    @property
    def groups(self):
        return self.root / 'groups'

    def mount_v2(self):
        self.groups.mkdir(exist_ok=True)
        (self.proc / 'self' / 'mountinfo').write_text(
            f'41 31 0:38 / {self.groups} rw - cgroup2 cgroup2 rw\n'
        )

    def mount_v1(self, *controllers):
        lines = []
        for controller in controllers:
            path = self.groups / controller
            path.mkdir(parents=True, exist_ok=True)
            lines.append(
                f'41 31 0:38 / {path} rw - cgroup cgroup rw,{controller}\n'
            )
        (self.proc / 'self' / 'mountinfo').write_text(''.join(lines))

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add_process(self, pid, start=1000, group='', uuid=''):
        own = self.proc / str(pid)
        self.write(
            own / 'stat', STAT.format(pid=pid, user=0, system=0, start=start)
        )
        self.write(own / 'cmdline', f'qemu\0-uuid\0{uuid}\0')
        self.write(own / 'statm', '100 50 1 1 0 1 0\n')
        self.write(own / 'status', 'Name:\tqemu\nVmRSS:\t200 kB\n')
        self.set_io(pid, 0, 0)
        self.write(own / 'cgroup', f'0::{group or "/"}\n')
        return own

    def end_process(self, pid):
        """Leave what the kernel leaves until the parent has noticed."""
        stat = self.proc / str(pid) / 'stat'
        stat.write_text(stat.read_text().replace(') S ', ') Z '))
        (stat.parent / 'statm').write_text('0 0 0 0 0 0 0\n')
        (stat.parent / 'cmdline').write_text('')

    def add_vm(self, number, start=1000, **fields):
        pid = 1000 + number
        group = f'/machine/qemu-{number}-vm'
        self.add_process(pid, start, group)
        self.set_group(number, 0, 0)
        vm = instance.Instance(
            uuid=UUID.format(number),
            domain_name=f'vm{number}',
            vcpus=1,
            memory_bytes=fields.pop('memory_bytes', 2**30),
            **fields,
        )
        return instance.Incarnation(vm, pid, start)

    def set_group(self, number, usage_us, stall_us):
        group = self.groups / 'machine' / f'qemu-{number}-vm'
        self.write(group / 'cpu.stat', f'usage_usec {usage_us}\nuser_usec 0\n')
        self.write(
            group / 'cpu.pressure',
            f'some avg10=0 avg60=0 avg300=0 total={stall_us}\nfull total=0\n',
        )

    def set_io(self, pid, read, written):
        self.write(
            self.proc / str(pid) / 'io',
            'rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\n'
            f'read_bytes: {read}\nwrite_bytes: {written}\n'
            'cancelled_write_bytes: 0\n',
        )

    def set_interfaces(self, counters):
        (self.proc / 'net' / 'dev').write_text(
            NET_HEAD
            + ''.join(
                f'{name}: {received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n'
                for name, (received, sent) in counters.items()
            )
        )


@contextlib.contextmanager
def no_descriptors():
    """Keep this process from opening any file; what is open stays open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
