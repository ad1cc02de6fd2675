# SPDX-License-Identifier: Apache-2.0

"""The kernel files that count the use of one VM.

``doc/source/reference/counters.rst`` explains the choice of file for each
resource.
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
    """Mean time that the vCPU threads of a VM waited for a CPU.

    A thread's ``schedstat`` counts the time for which it was ready but did not
    run. The mean over the vCPUs never exceeds the time in which at least one
    waited, which the pressure of a v2 group counts.

    :param own: ``/proc/PID`` of the VM.
    :param descriptors: budget of open files.
    :raises OSError: if no file descriptor is free.
    """

    __slots__ = ('_files',)

    def __init__(
        self, own: pathlib.Path, descriptors: files.DescriptorBudget
    ) -> None:
        self._files: list[files.OpenFile] = []
        try:
            for thread in _vcpu_threads(own):
                path = str(thread / 'schedstat')
                self._files.append(files.OpenFile(path, descriptors))
        except OSError as error:
            self.close()
            if files.no_descriptor_free(error):
                raise

    @property
    def stays_open(self) -> bool:
        """Whether all files stay open between readings."""
        return all(file.stays_open for file in self._files)

    def read(self) -> float:
        """Read the present value.

        :returns: seconds; NaN if no vCPU thread was found.
        :raises OSError: if a thread ended.
        """
        if not self._files:
            return math.nan
        waited = sum(
            kernel_text.waited_seconds(file.read()) for file in self._files
        )
        return waited / len(self._files)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files = []


def _vcpu_threads(own: pathlib.Path) -> list[pathlib.Path]:
    """Return the directories of the vCPU threads.

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


def _cpu_seconds_of_stat(stat: bytes) -> float:
    return kernel_text.cpu_ticks(stat) / _TICKS_PER_S


def _bytes_of_statm(statm: bytes) -> float:
    return float(kernel_text.resident_pages(statm) * _PAGE_BYTES)


def _bytes_of_status(status: bytes) -> float:
    return float(kernel_text.resident_bytes(status))


def _seconds_of_nanoseconds(text: bytes) -> float:
    return int(text) / 1e9


class _FirstReadable(Generic[_T]):
    """The first of several files that can be read and parsed.

    :param candidates: file and parser, by preference.
    :param default: value if no file can be read.
    :raises OSError: if no file descriptor is free.
    """

    __slots__ = ('_default', '_file', '_parse')

    def __init__(
        self,
        candidates: Iterator[tuple[pathlib.PurePath, _Parser[_T]]],
        default: _T,
        descriptors: files.DescriptorBudget,
    ) -> None:
        self._default = default
        self._file: files.OpenFile | None = None
        for path, parse in candidates:
            if self._try_file(str(path), parse, descriptors):
                return

    def _try_file(
        self,
        path: str,
        parse: _Parser[_T],
        descriptors: files.DescriptorBudget,
    ) -> bool:
        try:
            file = files.OpenFile(path, descriptors)
        except OSError as error:
            if files.no_descriptor_free(error):
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
    def is_found(self) -> bool:
        """Whether one of the files can be read."""
        return self._file is not None

    @property
    def stays_open(self) -> bool:
        """Whether the file stays open between readings."""
        return self._file is None or self._file.stays_open

    def read(self) -> _T:
        """Read the present value.

        :raises OSError: if the file vanished.
        """
        if self._file is None:
            return self._default
        try:
            return self._parse(self._file.read())
        except (ValueError, IndexError):
            return self._default

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class VmFiles:
    """All counter files of one incarnation.

    :param incarnation: the VM.
    :param proc: mount point of procfs.
    :param mounts: of control groups.
    :param descriptors: budget of open files.
    :raises ProcessLookupError: if the process ended or its ID belongs to
        another process.
    :raises OSError: if no file descriptor is free.
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
        descriptors: files.DescriptorBudget,
    ) -> None:
        self._proc, self._pid = proc, incarnation.pid
        self._ticks = incarnation.start_ticks
        self._verify()
        own = proc / str(incarnation.pid)
        groups = private_groups(own, mounts)
        nan = math.nan
        with contextlib.ExitStack() as opened:
            self._cpu = _FirstReadable(
                _cpu_files(own, groups), nan, descriptors
            )
            opened.callback(self._cpu.close)
            self._stall = _stall_source(own, groups, descriptors)
            opened.callback(self._stall.close)
            self._memory = _FirstReadable(_memory_files(own), nan, descriptors)
            opened.callback(self._memory.close)
            disk = _disk_files(own, groups)
            self._disk = _FirstReadable(disk, (nan, nan), descriptors)
            opened.pop_all()

    def _verify(self) -> None:
        if processes.start_ticks(self._proc, self._pid) != self._ticks:
            raise ProcessLookupError(
                f'process {self._pid}: it is not the process of the VM'
            )

    def read(self) -> tuple[float, float, float, tuple[float, float]]:
        """Read all counters.

        :returns: CPU seconds, stalled seconds, resident bytes, and bytes
            (read, written); NaN where the kernel has no counter.
        :raises OSError: if the VM ended.
        """
        if not self._all_stay_open():
            # A kept descriptor dies with its process; a path does not.
            self._verify()
        memory = self._memory.read()
        if memory == 0:
            raise ProcessLookupError(f'process {self._pid}: it has ended')
        return self._cpu.read(), self._stall.read(), memory, self._disk.read()

    def _all_stay_open(self) -> bool:
        return (
            self._memory.stays_open
            and self._cpu.stays_open
            and self._disk.stays_open
            and self._stall.stays_open
        )

    def close(self) -> None:
        """Close all files."""
        for source in (self._cpu, self._stall, self._memory, self._disk):
            source.close()


def private_groups(
    own: pathlib.Path, mounts: Mapping[str, cgroup.Mount]
) -> Mapping[str, pathlib.PurePosixPath]:
    """Return the control groups that contain only this VM.

    :param own: ``/proc/PID`` of the VM.
    :returns: directory by controller, v2 under :data:`cgroup.UNIFIED`; without
        controllers that libvirt does not manage.
    :raises OSError: if no file descriptor is free.
    """
    try:
        groups = cgroup.groups_of_process((own / 'cgroup').read_text())
    except OSError as error:
        if files.no_descriptor_free(error):
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
        yield groups['cpuacct'] / 'cpuacct.usage', _seconds_of_nanoseconds
    yield own / 'stat', _cpu_seconds_of_stat


def _stall_source(
    own: pathlib.Path, groups: _Groups, descriptors: files.DescriptorBudget
) -> _FirstReadable[float] | VcpuStall:
    """Return the source of stall times: the pressure of the VM's v2
    group, else its threads.
    """
    if cgroup.UNIFIED in groups:
        path = groups[cgroup.UNIFIED] / 'cpu.pressure'
        found = iter([(path, kernel_text.stall_seconds)])
        pressure = _FirstReadable(found, math.nan, descriptors)
        if pressure.is_found:
            return pressure
    return VcpuStall(own, descriptors)


def _memory_files(
    own: pathlib.Path,
) -> Iterator[tuple[pathlib.PurePath, _Parser[float]]]:
    if _has_huge_pages(own):
        yield own / 'status', _bytes_of_status
    yield own / 'statm', _bytes_of_statm


def _has_huge_pages(own: pathlib.Path) -> bool:
    try:
        status = (own / 'status').read_bytes()
    except OSError as error:
        if files.no_descriptor_free(error):
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
