# SPDX-License-Identifier: Apache-2.0

"""Files of control groups that steer a VM's process."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import errno
import os
import pathlib
import re
import types
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.model import cgroup
from nova_fairness.model import instance

CPU_CONTROLLER = 'cpu'

OWN = 0
"""Level of a VM's own group; its parent has level 1, and so on to the root."""

INNER = -1
"""Level of a group between a VM's own group and those of its threads.
libvirt creates it where systemd manages the VM's own group."""


def vcpu_level(number: int) -> int:
    """Return the level of the group of a vCPU's thread.

    :param number: of the vCPU, >= 0.
    """
    return cgroup.FIRST_VCPU - number


_GONE = (errno.ENOENT, errno.ESRCH)
_NUMBER = r'[0-9]{1,19}'
_CPUS = r'[0-9]{1,5}(-[0-9]{1,5})?'
_DEVICE = r'[0-9]{1,7}:[0-9]{1,7}'


@dataclasses.dataclass(frozen=True, slots=True)
class ControlFile:
    """A kernel file that the agent may write.

    :ivar controller: of the file's hierarchy, as named by
        :func:`nova_fairness.model.cgroup.groups_of_process`.
    :ivar lowest: smallest value that the kernel accepts.
    :ivar highest: largest value that the kernel accepts.
    :ivar default: value of a new group.
    :ivar pattern: regular expression of the whole text that may be written.
    :ivar everywhere: whether it may also be written in groups other than a
        VM's own; see :data:`INNER` and :data:`OWN`.
    :ivar otherwise: the controller where ``controller`` is not mounted.
    :ivar of_vcpus: whether it is written in groups of vCPUs only; see
        :func:`vcpu_level`.
    """

    controller: str
    lowest: int
    highest: int
    default: int
    pattern: str = _NUMBER
    everywhere: bool = False
    otherwise: str | None = None
    of_vcpus: bool = False

    def allows(self, text: str, level: int) -> bool:
        """Check whether a value may be written to the group of a level."""
        is_place = level <= cgroup.FIRST_VCPU
        if not self.of_vcpus:
            is_place = level == OWN or (self.everywhere and level >= INNER)
        fits = re.fullmatch(self.pattern, text, re.ASCII) is not None
        return is_place and fits


CPU_SHARES = 'cpu.shares'
CPU_WEIGHT = 'cpu.weight'
CPU_IDLE = 'cpu.idle'
MEMORY_SOFT_LIMIT = 'memory.soft_limit_in_bytes'
MEMORY_LOW = 'memory.low'
BLKIO_WEIGHT = 'blkio.weight'
BLKIO_BFQ_WEIGHT = 'blkio.bfq.weight'
IO_WEIGHT = 'io.weight'
IO_BFQ_WEIGHT = 'io.bfq.weight'
IO_MAX = 'io.max'
BLKIO_READ_BPS = 'blkio.throttle.read_bps_device'
BLKIO_WRITE_BPS = 'blkio.throttle.write_bps_device'
CPUSET_CPUS = 'cpuset.cpus'

_UNLIMITED = 9223372036854771712
_RATE = 2**63 - 1
_BPS = f'{_DEVICE} {_NUMBER}'

FILES: Mapping[str, ControlFile] = types.MappingProxyType(
    {
        CPU_SHARES: ControlFile(CPU_CONTROLLER, 2, 262144, 1024),
        CPU_WEIGHT: ControlFile(cgroup.UNIFIED, 1, 10000, 100),
        CPU_IDLE: ControlFile(
            CPU_CONTROLLER, 0, 1, 0, '[01]', otherwise=cgroup.UNIFIED
        ),
        MEMORY_SOFT_LIMIT: ControlFile('memory', 0, _UNLIMITED, _UNLIMITED),
        MEMORY_LOW: ControlFile(
            cgroup.UNIFIED, 0, _UNLIMITED, 0, f'{_NUMBER}|max', everywhere=True
        ),
        BLKIO_WEIGHT: ControlFile('blkio', 10, 1000, 500),
        BLKIO_BFQ_WEIGHT: ControlFile('blkio', 1, 1000, 100),
        IO_WEIGHT: ControlFile(
            cgroup.UNIFIED, 1, 10000, 100, f'(default )?{_NUMBER}'
        ),
        IO_BFQ_WEIGHT: ControlFile(
            cgroup.UNIFIED, 1, 1000, 100, f'(default )?{_NUMBER}'
        ),
        IO_MAX: ControlFile(
            cgroup.UNIFIED,
            0,
            _RATE,
            _RATE,
            f'{_DEVICE}( (rbps|wbps|riops|wiops)=(max|{_NUMBER})){{1,4}}',
        ),
        BLKIO_READ_BPS: ControlFile('blkio', 0, _RATE, 0, _BPS),
        BLKIO_WRITE_BPS: ControlFile('blkio', 0, _RATE, 0, _BPS),
        # Empty is what the group above has, where groups are of version 2.
        CPUSET_CPUS: ControlFile(
            'cpuset',
            0,
            99999,
            0,
            f'({_CPUS}(,{_CPUS})*)?',
            otherwise=cgroup.UNIFIED,
            of_vcpus=True,
        ),
    }
)
"""All files that the agent may write, by name."""


def start_ticks(proc: str, pid: int) -> int | None:
    """Read the start time of a process.

    :param proc: where procfs is mounted.
    :returns: clock ticks since boot; ``None`` if the process ended or is a
        zombie, which has left its groups.
    :raises OSError: if it cannot be read, for example without free
        descriptors.
    """
    try:
        text = _read_text(f'{proc}/{pid}/stat')
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    # The name in parentheses may itself hold blanks and parentheses.
    fields = text.rpartition(')')[2].split()
    return None if fields[0] in ('Z', 'X') else int(fields[19])


def is_running(proc: str, key: str) -> bool:
    """Check whether an incarnation's process is still the same process.

    :param key: of the incarnation.
    :raises OSError: if that is unknown.
    """
    _, pid, ticks = instance.parse_key(key)
    return start_ticks(proc, pid) == ticks


class ControlPaths(NamedTuple):
    """Paths of a control of a VM.

    :ivar group: directory of the group of the whole VM.
    :ivar control: the file, which may not exist.
    """

    group: str
    control: str


def control_paths(
    proc: str,
    mounts: Mapping[str, cgroup.Mount],
    pid: int,
    name: str,
    level: int = OWN,
) -> ControlPaths:
    """Return the paths of a control of a VM, from one reading.

    :param pid: process of the VM.
    :param name: one of :data:`FILES`.
    :param level: of the group: the VM's own, :data:`INNER`, a level above the
        VM's own, or that of a vCPU.
    :raises OSError: if the process ended.
    :raises WriteRefused: if the group is shared by VMs, is not visible, or has
        no group of that level.
    """
    if (level <= cgroup.FIRST_VCPU) is not FILES[name].of_vcpus:
        raise exception.WriteRefused(
            f'file {name}: it does not exist in control groups of level '
            f'{level}'
        )
    mount, own = _group_and_mount(proc, mounts, pid, name)
    return ControlPaths(
        str(_directory(mount, own, OWN, pid)),
        str(_directory(mount, own, level, pid) / name),
    )


def control_path(
    proc: str,
    mounts: Mapping[str, cgroup.Mount],
    pid: int,
    name: str,
    level: int = OWN,
) -> str:
    """Return the path of a control file; see :func:`control_paths`."""
    return control_paths(proc, mounts, pid, name, level).control


def _group_and_mount(
    proc: str, mounts: Mapping[str, cgroup.Mount], pid: int, name: str
) -> tuple[cgroup.Mount, str]:
    """Return the mount of a file's hierarchy and the group of a VM's
    process.
    """
    file = FILES[name]
    controller = file.controller
    if file.otherwise is not None and controller not in mounts:
        controller = file.otherwise
    text = _read_text(f'{proc}/{pid}/cgroup')
    own = cgroup.groups_of_process(text).get(controller)
    mount = mounts.get(controller)
    if own is None or mount is None:
        raise exception.WriteRefused(
            f'process {pid}: none of its control groups has the file {name}'
        )
    group = cgroup.group_of_vm(own)
    if not cgroup.is_private(group):
        raise exception.WriteRefused(
            f'process {pid}: its control group {group} is not that '
            f'of one VM; expected the group that libvirt creates for it'
        )
    return mount, own


def _directory(
    mount: cgroup.Mount, own: str, level: int, pid: int
) -> pathlib.PurePosixPath:
    try:
        return cgroup.directory(mount, cgroup.ancestor_group(own, level))
    except ValueError as error:
        raise exception.WriteRefused(
            f'process {pid}: its control group is not visible here: {error}'
        ) from error


def _read_text(path: str) -> str:
    """Read a file of procfs, with a third of the system calls of
    ``open()``.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, 4096)]
        while parts[-1]:
            parts.append(os.read(descriptor, 4096))
    finally:
        os.close(descriptor)
    return b''.join(parts).decode('utf-8', 'replace')


_IDLE_ROUNDS = 8
_MAX_VALUE_BYTES = 4096


@dataclasses.dataclass(slots=True)
class _OpenFile:
    """One open control file.

    :ivar descriptor: of the file; it never refers to another group.
    :ivar last_round: number of the last round that read the file.
    """

    descriptor: int
    last_round: int


class OpenControls:
    """Reads one control file of many VMs, and leaves the files open.

    :param proc: where procfs is mounted.
    :param mounts: by controller, as returned by :func:`cgroup.mounts`.
    :param name: of the file, one of :data:`FILES`.
    :param max_open: largest number of descriptors that stay open.
    :param parse: converts a file's content to a value, or raises
        ``ValueError``.
    :param level: of the group, see :func:`control_path`.
    """

    def __init__(
        self,
        proc: str,
        mounts: Mapping[str, cgroup.Mount],
        name: str,
        max_open: int,
        parse: Callable[[bytes], int] = int,
        level: int = OWN,
    ) -> None:
        self._proc = proc
        self._mounts = mounts
        self._name = name
        self._max_open = max_open
        self._parse = parse
        self._level = level
        self._files: dict[str, _OpenFile] = {}
        self._round = 0

    def __len__(self) -> int:
        return len(self._files)

    def read(self, key: str) -> int | None:
        """Read the present value of a VM.

        :param key: of the incarnation.
        :returns: kernel units; ``None`` if the VM ended.
        :raises WriteRefused: if the VM has no such control of its own.
        """
        try:
            opened = self._files.get(key) or self._open_file(key)
            opened.last_round = self._round
            raw = os.pread(opened.descriptor, _MAX_VALUE_BYTES, 0)
            if len(self._files) > self._max_open:
                self.forget(key)
            return self._parse(raw)
        except (OSError, ValueError, exception.WriteRefused) as error:
            self.forget(key)
            if self.is_gone(key):
                return None
            raise exception.WriteRefused(
                f'{self._name} cannot be read: {error}'
            ) from error

    def is_gone(self, key: str) -> bool:
        """Check whether a VM's process ended; ``False`` if that is unknown."""
        try:
            return not is_running(self._proc, key)
        except OSError:
            return False

    def forget(self, key: str) -> None:
        """Close one file; the next read opens it again."""
        opened = self._files.pop(key, None)
        if opened is not None:
            os.close(opened.descriptor)

    def next_round(self, expected: int) -> None:
        """Begin a round; close files that were not read for several rounds.

        :param expected: number of VMs that the round will read.
        """
        self._round += 1
        if len(self._files) <= expected:
            return
        for key, opened in list(self._files.items()):
            if opened.last_round + _IDLE_ROUNDS < self._round:
                self.forget(key)

    def close(self) -> None:
        """Close all files."""
        for key in list(self._files):
            self.forget(key)

    def _open_file(self, key: str) -> _OpenFile:
        """Open the file of a VM.

        :raises OSError: if the VM ended or has no such control.
        :raises WriteRefused: if its group is shared.
        """
        _, pid, _ = instance.parse_key(key)
        path = control_path(
            self._proc, self._mounts, pid, self._name, self._level
        )
        opened = _OpenFile(
            os.open(path, os.O_RDONLY | os.O_CLOEXEC), self._round
        )
        self._files[key] = opened
        # Checked after opening: had the process ended before that, another
        # one with its number would show another start.
        if not is_running(self._proc, key):
            raise ProcessLookupError(
                f'process {pid}: it is no longer the process of the VM'
            )
        return opened
