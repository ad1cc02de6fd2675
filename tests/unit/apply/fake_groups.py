# SPDX-License-Identifier: Apache-2.0

"""Control groups of memory and block I/O that are real files."""

import errno
import pathlib

from nova_fairness import exception
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from tests.unit.apply import fake_host

FILES = {
    'memory': {'memory.soft_limit_in_bytes': '9223372036854771712\n'},
    'blkio': {
        'blkio.bfq.weight': '100\n',
        'blkio.throttle.read_bps_device': '',
        'blkio.throttle.write_bps_device': '',
    },
    'cpuset': {},
    '': {
        'memory.low': '0\n',
        'io.bfq.weight': 'default 100\n8:0 200\n',
        'io.weight': 'default 100\n',
        'io.max': '',
    },
}


class FakeGroups:
    """VMs of one host; ``v1`` or ``v2``.

    The fake of the kernel behaves like it where the product depends on it:
    a rule for a device replaces the one before, and none removes it.
    """

    def __init__(self, root: pathlib.Path, version: str) -> None:
        self.root = root
        self.version = version
        self.proc = root / 'proc'
        self.mountinfo = root / 'mountinfo'
        self.proc.mkdir()
        self.hierarchies = (
            ('memory', 'blkio', 'cpuset') if version == 'v1' else ('',)
        )
        self.refused: dict[str, int] = {}
        self.broken = ''
        self.written: list[tuple] = []
        lines = []
        for name in self.hierarchies:
            top = self.top(name)
            top.mkdir(parents=True)
            kind = f'cgroup none rw,{name}' if name else 'cgroup2 none rw'
            lines.append(f'41 31 0:38 / {top} rw - {kind}')
        if version == 'v2':
            (self.top('') / 'cgroup.controllers').write_text('cpu io memory')
        self.mountinfo.write_text('\n'.join(lines) + '\n')

    def top(self, hierarchy):
        return self.root / 'groups' / (hierarchy or 'unified')

    def start(self, number, parent='machine', inner='', ticks=500):
        """Start a VM; gives its incarnation's key."""
        pid = 1000 + number
        group = f'/{parent}/qemu-{number}-vm.libvirt-qemu'
        lines = []
        for place, name in enumerate(self.hierarchies):
            self._make(name, group + inner)
            lines.append(
                f'{place + 2 if name else 0}:{name}:{group}{inner}/emulator\n'
            )
        process = self.proc / str(pid)
        process.mkdir()
        (process / 'stat').write_text(fake_host.stat_line(pid, ticks))
        (process / 'cgroup').write_text(''.join(lines))
        return f'uuid-{number}/{pid}/{ticks}'

    def _make(self, hierarchy, group):
        path = self.top(hierarchy)
        for part in group.strip('/').split('/'):
            path /= part
            path.mkdir(exist_ok=True)
            for name, text in FILES[hierarchy].items():
                if not (path / name).exists():
                    (path / name).write_text(text)

    def end(self, key):
        process = self.proc / key.split('/')[1]
        for item in process.iterdir():
            item.unlink()
        process.rmdir()

    def path(self, key, file, level=0):
        _, pid, _ = instance.parse_key(key)
        mounts = cgroup.mounts(self.mountinfo.read_text())
        return pathlib.Path(
            files.control_path(str(self.proc), mounts, pid, file, level)
        )

    def value(self, key, file, level=0):
        return self.path(key, file, level).read_text().strip()

    def write(self, requests):
        """Do what the privileged helper and the kernel do."""
        if self.broken:
            raise exception.ControlUnavailable(self.broken)
        return [self._write(*request) for request in requests]

    def _write(self, file, text, pid, ticks, level=0):
        self.written.append((file, text, level))
        assert files.FILES[file].allows(text, level), (file, text, level)
        key = f'uuid/{pid}/{ticks}'
        if file in self.refused:
            return self.refused[file]
        try:
            path = self.path(key, file, level)
        except OSError:
            return errno.ESRCH
        if ':' in text:
            self._set_rule(path, text)
        elif file.startswith('io.'):
            lines = path.read_text().splitlines()[1:]
            value = text.removeprefix('default ')
            path.write_text('\n'.join([f'default {value}', *lines]) + '\n')
        else:
            path.write_text(text + '\n')
        return 0

    def _set_rule(self, path, text):
        device, _, rest = text.partition(' ')
        rules = [
            line
            for line in path.read_text().splitlines()
            if not line.startswith(f'{device} ')
        ]
        gone = rest == '0' or all(
            part.endswith('=max') for part in rest.split()
        )
        if not gone:
            rules.append(f'{device} {rest}')
        path.write_text(''.join(f'{line}\n' for line in rules))

    def options(self):
        return {
            'proc': str(self.proc),
            'mountinfo_path': str(self.mountinfo),
            'writer': self.write,
        }


def change(key, kind, after):
    return allocation.Change(allocation.Knob(key, kind), None, after)
