# SPDX-License-Identifier: Apache-2.0

"""The kernel files that count what one VM uses.

Which file is right for which resource, and why, is documented in
``doc/source/reference/counters.rst``.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import math
import os
import pathlib
from typing import Generic
from typing import TypeVar

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text
from nova_fairness.collect import processes
from nova_fairness.model import cgroup
from nova_fairness.model import instance

# Names that QEMU gives to the threads in which vCPUs run.
_VCPU_THREADS = ('CPU ', 'ALL CPUs')


class VcpuStall:
    """Mean time that the vCPU threads of a VM waited to be scheduled.

    A thread's ``schedstat`` counts the time it was ready to run and did not.
    The mean over the vCPUs never exceeds the time in which at least one of
    them waited, which is what pressure of a v2 group counts.

    :param own: ``/proc/PID`` of the VM.
    :param descriptors: budget of kept descriptors.
    :raises OSError: if no descriptor is left to look.
    """

    __slots__ = ('_files',)

    def __init__(
        self, own: pathlib.Path, descriptors: files.Descriptors
    ) -> None:
        self._files: list[files.KeptFile] = []
        try:
            for thread in _vcpu_threads(own):
                path = str(thread / 'schedstat')
                self._files.append(files.KeptFile(path, descriptors))
        except OSError as error:
            self.close()
            if files.none_left(error):
                raise

    @property
    def kept(self) -> bool:
        """Whether all descriptors stay open between readings."""
        return all(file.kept for file in self._files)

    def read(self) -> float:
        """Read the present value.

        :returns: seconds; NaN if no thread of a vCPU was found.
        :raises OSError: if a thread has ended.
        """
        if not self._files:
            return math.nan
        waited = sum(
            kernel_text.waited_seconds(file.read()) for file in self._files
        )
        return waited / len(self._files)

    def close(self) -> None:
        """Close the descriptors."""
        for file in self._files:
            file.close()
        self._files = []


def _vcpu_threads(own: pathlib.Path) -> list[pathlib.Path]:
    """Find the threads of the vCPUs.

    :raises OSError: if the process or one of its threads ended meanwhile.
    """
    return [
        thread
        for thread in sorted((own / 'task').iterdir())
        if (thread / 'comm').read_text().startswith(_VCPU_THREADS)
    ]


_T = TypeVar('_T')
_Parser = Callable[[bytes], _T]
_TICKS_PER_S = os.sysconf('SC_CLK_TCK')
_PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')


def _ticks_in_seconds(stat: bytes) -> float:
    return kernel_text.cpu_ticks(stat) / _TICKS_PER_S


def _pages_in_bytes(statm: bytes) -> float:
    return float(kernel_text.resident_pages(statm) * _PAGE_BYTES)


def _huge_and_resident(status: bytes) -> float:
    return float(kernel_text.resident_bytes(status))


def _nanoseconds(text: bytes) -> float:
    return int(text) / 1e9


class _Source(Generic[_T]):
    """The first of several files that can be read and understood.

    :param candidates: file and parser, the best first.
    :param unknown: what to give while no file can be read.
    :raises OSError: if no descriptor is left to look.
    """

    __slots__ = ('_file', '_parse', '_unknown')

    def __init__(
        self,
        candidates: Iterator[tuple[pathlib.PurePath, _Parser[_T]]],
        unknown: _T,
        descriptors: files.Descriptors,
    ) -> None:
        self._unknown = unknown
        self._file: files.KeptFile | None = None
        for path, parse in candidates:
            if self._try(str(path), parse, descriptors):
                return

    def _try(
        self, path: str, parse: _Parser[_T], descriptors: files.Descriptors
    ) -> bool:
        try:
            file = files.KeptFile(path, descriptors)
        except OSError as error:
            if files.none_left(error):
                raise
            return False
        try:
            parse(file.read())
        except (OSError, ValueError, IndexError):
            file.close()
            return False
        self._file, self._parse = file, parse
        return True

    @property
    def found(self) -> bool:
        return self._file is not None

    @property
    def kept(self) -> bool:
        return self._file is None or self._file.kept

    def read(self) -> _T:
        """Read the present value.

        :raises OSError: if the file has gone.
        """
        if self._file is None:
            return self._unknown
        try:
            return self._parse(self._file.read())
        except (ValueError, IndexError):
            return self._unknown

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class VmFiles:
    """All files of one incarnation, found once.

    :param incarnation: the VM.
    :param proc: mount point of the process file system.
    :param mounts: where the control groups are mounted.
    :param descriptors: budget of kept descriptors.
    :raises ProcessLookupError: if the process has ended or its number
        belongs to another one.
    :raises OSError: if no descriptor is left to look.
    """

    __slots__ = (
        '_cpu',
        '_disk',
        '_memory',
        '_pid',
        '_proc',
        '_stall',
        '_ticks',
    )

    def __init__(
        self,
        incarnation: instance.Incarnation,
        proc: pathlib.Path,
        mounts: Mapping[str, cgroup.Mount],
        descriptors: files.Descriptors,
    ) -> None:
        self._proc, self._pid = proc, incarnation.pid
        self._ticks = incarnation.start_ticks
        self._verify()
        own = proc / str(incarnation.pid)
        groups = private_groups(own, mounts)
        nan = math.nan
        with contextlib.ExitStack() as opened:
            self._cpu = _Source(_cpu_files(own, groups), nan, descriptors)
            opened.callback(self._cpu.close)
            self._stall = _stall_source(own, groups, descriptors)
            opened.callback(self._stall.close)
            self._memory = _Source(_memory_files(own), nan, descriptors)
            opened.callback(self._memory.close)
            disk = _disk_files(own, groups)
            self._disk = _Source(disk, (nan, nan), descriptors)
            opened.pop_all()

    def _verify(self) -> None:
        if processes.start_ticks(self._proc, self._pid) != self._ticks:
            raise ProcessLookupError(f'process {self._pid} is another one')

    def read(self) -> tuple[float, float, float, tuple[float, float]]:
        """Read all of them.

        :returns: CPU seconds, stalled seconds, resident bytes, and bytes
            (read, written); NaN for what the kernel does not tell.
        :raises OSError: if the VM has ended.
        """
        if not self._all_kept():
            # A kept descriptor dies with its process; a path does not.
            self._verify()
        memory = self._memory.read()
        if memory == 0:
            raise ProcessLookupError(f'process {self._pid} has ended')
        return self._cpu.read(), self._stall.read(), memory, self._disk.read()

    def _all_kept(self) -> bool:
        return (
            self._memory.kept
            and self._cpu.kept
            and self._disk.kept
            and self._stall.kept
        )

    def close(self) -> None:
        """Close all descriptors."""
        for source in (self._cpu, self._stall, self._memory, self._disk):
            source.close()


def private_groups(
    own: pathlib.Path, mounts: Mapping[str, cgroup.Mount]
) -> Mapping[str, pathlib.PurePosixPath]:
    """Find the groups that hold one VM and nothing else.

    :param own: ``/proc/PID`` of the VM.
    :returns: directory by controller, v2 under :data:`cgroup.UNIFIED`;
        without the controllers that libvirt does not manage.
    :raises OSError: if no descriptor is left to look.
    """
    try:
        groups = cgroup.groups_of_process((own / 'cgroup').read_text())
    except OSError as error:
        if files.none_left(error):
            raise
        return {}
    found: dict[str, pathlib.PurePosixPath] = {}
    for controller, group in groups.items():
        vm_group = cgroup.group_of_vm(group)
        if controller not in mounts or not cgroup.is_private(vm_group):
            continue
        try:
            found[controller] = cgroup.directory(mounts[controller], vm_group)
        except ValueError:
            continue
    return found


_Groups = Mapping[str, pathlib.PurePosixPath]


def _cpu_files(
    own: pathlib.Path, groups: _Groups
) -> Iterator[tuple[pathlib.PurePath, _Parser[float]]]:
    if cgroup.UNIFIED in groups:
        path = groups[cgroup.UNIFIED] / 'cpu.stat'
        yield path, kernel_text.usage_seconds
    if 'cpuacct' in groups:
        yield groups['cpuacct'] / 'cpuacct.usage', _nanoseconds
    yield own / 'stat', _ticks_in_seconds


def _stall_source(
    own: pathlib.Path, groups: _Groups, descriptors: files.Descriptors
) -> _Source[float] | VcpuStall:
    """Prefer pressure of the VM's own group, which only v2 has."""
    if cgroup.UNIFIED in groups:
        path = groups[cgroup.UNIFIED] / 'cpu.pressure'
        found = iter([(path, kernel_text.stall_seconds)])
        pressure = _Source(found, math.nan, descriptors)
        if pressure.found:
            return pressure
    return VcpuStall(own, descriptors)


def _memory_files(
    own: pathlib.Path,
) -> Iterator[tuple[pathlib.PurePath, _Parser[float]]]:
    if _has_huge_pages(own):
        yield own / 'status', _huge_and_resident
    yield own / 'statm', _pages_in_bytes


def _has_huge_pages(own: pathlib.Path) -> bool:
    try:
        status = (own / 'status').read_bytes()
    except OSError as error:
        if files.none_left(error):
            raise
        return False
    return kernel_text.huge_page_bytes(status) > 0


def _disk_files(
    own: pathlib.Path, groups: _Groups
) -> Iterator[tuple[pathlib.PurePath, _Parser[tuple[float, float]]]]:
    yield own / 'io', kernel_text.storage_bytes
    if cgroup.UNIFIED in groups:
        path = groups[cgroup.UNIFIED] / 'io.stat'
        yield path, kernel_text.device_bytes
