# SPDX-License-Identifier: Apache-2.0

"""Reads the total use of every VM on this host.

Only the kernel is read, never a guest's monitor, so that a VM that hangs
delays nothing. Files stay open between rounds, which makes reading six times
cheaper.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math
import os
import pathlib
import time

import numpy as np
import numpy.typing as npt

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text
from nova_fairness.collect import vm_files
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import sample

Interfaces = Mapping[str, tuple[int, int]]
"""Bytes that the host received and sent, by interface."""

# The host's end of a macvtap looks from the VM's side already: what the
# device receives goes to the VM. A tap is the far end of a cable.
_SAME_DIRECTION = frozenset(('direct',))


@dataclasses.dataclass(slots=True)
class _NicCounter:
    """Counters of one NIC: the sum from before its tap was recreated, and
    the last values.
    """

    past: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)

    def advance(self, present: tuple[int, int]) -> None:
        if present[0] < self.last[0] or present[1] < self.last[1]:
            self.past = (
                self.past[0] + self.last[0],
                self.past[1] + self.last[1],
            )
        self.last = present


class NetworkTotals:
    """Cumulative traffic of one VM over all its NICs.

    A NIC whose tap vanished keeps its last value. A NIC whose tap was
    recreated continues from there, so that traffic is never negative.
    """

    __slots__ = ('_nics',)

    def __init__(self) -> None:
        self._nics: dict[str, _NicCounter] = {}

    def advance(
        self,
        nics: tuple[instance.Nic, ...],
        interfaces: Interfaces,
    ) -> tuple[float, float]:
        """Add the present counters, and return the totals.

        :param interfaces: bytes that the host received and sent, by interface.
        :returns: bytes that the VM received and sent; 0 for NICs without a
            tap.
        """
        for nic in nics:
            seen = interfaces.get(nic.tap) if nic.tap else None
            if seen is None:
                continue
            if nic.kind not in _SAME_DIRECTION:
                seen = seen[1], seen[0]
            counted = self._nics.get(nic.mac)
            if counted is None:
                counted = self._nics[nic.mac] = _NicCounter()
            counted.advance(seen)
        received = sent = 0
        for counted in self._nics.values():
            received += counted.past[0] + counted.last[0]
            sent += counted.past[1] + counted.last[1]
        return float(received), float(sent)


_CPU = resources.RESOURCES.index('cpu_time')
_READ = resources.RESOURCES.index('disk_read')
_WRITTEN = resources.RESOURCES.index('disk_written')
_RECEIVED = resources.RESOURCES.index('net_received')
_SENT = resources.RESOURCES.index('net_sent')
_MEMORY = resources.RESOURCES.index('memory')

_TICKS_PER_S = os.sysconf('SC_CLK_TCK')

MAX_DESCRIPTORS = 8192


class CounterReader:
    """Reads the counters of all VMs of this host.

    It must not be used by several threads at once.

    :param proc: where procfs is mounted.
    :param mountinfo: file that lists the mounts of control groups.
    :param net_dev: file with the counters of the interfaces, of the network
        namespace of this process.
    :param clock: monotonic seconds.
    :param max_descriptors: largest number of files that stay open, four per
        VM; further files are opened for each reading.
    """

    def __init__(
        self,
        proc: str = '/proc',
        mountinfo: str | None = None,
        net_dev: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        max_descriptors: int = MAX_DESCRIPTORS,
    ) -> None:
        self._proc = pathlib.Path(proc)
        self._mountinfo = pathlib.Path(mountinfo or f'{proc}/self/mountinfo')
        self._net_dev = pathlib.Path(net_dev or f'{proc}/net/dev')
        self._clock = clock
        self._descriptors = files.DescriptorBudget(max_descriptors)
        self._files: dict[str, vm_files.VmFiles] = {}
        self._mounts: Mapping[str, cgroup.Mount] | None = None
        self._network: dict[str, NetworkTotals] = {}

    def read(
        self, incarnations: tuple[instance.Incarnation, ...]
    ) -> sample.Sample:
        """Read the counters of the given VMs.

        :param incarnations: sorted by UUID; files of other VMs are closed.
        :returns: a row per VM; NaN if the VM ended or could not be read.
        """
        began = self._clock()
        keys = [vm.key for vm in incarnations]
        self._forget_absent(frozenset(keys))
        self._mounts = None
        interfaces = self._read_interfaces()
        size = len(incarnations)
        totals = np.full((size, len(resources.RESOURCES)), np.nan)
        stall, read_at = np.full(size, np.nan), np.full(size, began)
        for row, (key, vm) in enumerate(zip(keys, incarnations, strict=True)):
            read_at[row] = self._clock()
            try:
                totals[row], stall[row] = self._read_row(key, vm, interfaces)
            except OSError:
                self._close_files(key)
        return sample.Sample(
            began,
            incarnations,
            totals,
            stall,
            read_at,
            self._read_busy_seconds(),
        )

    def close(self) -> None:
        """Close all file descriptors."""
        self._forget_absent(frozenset())

    @property
    def descriptors(self) -> int:
        """The number of open file descriptors."""
        return self._descriptors.used

    def _read_busy_seconds(self) -> npt.NDArray[np.float64]:
        """Return the busy seconds of each CPU; empty if they cannot be
        read.
        """
        try:
            ticks = kernel_text.busy_ticks((self._proc / 'stat').read_bytes())
        except (OSError, ValueError, IndexError):
            return np.zeros(0)
        busy = np.full(max(ticks, default=-1) + 1, np.nan)
        busy[list(ticks)] = list(ticks.values())
        return busy / _TICKS_PER_S

    def _read_row(
        self,
        key: str,
        vm: instance.Incarnation,
        interfaces: Interfaces | None,
    ) -> tuple[list[float], float]:
        """Read one VM.

        :returns: a row in the sequence of the registry, and the stall in
            seconds.
        :raises OSError: if the VM ended, or no file descriptor is free.
        """
        sources = self._files.get(key)
        if sources is None:
            sources = self._files[key] = self._open_files(vm)
            self._network.setdefault(key, NetworkTotals())
        cpu_s, stall_s, memory, disk = sources.read()
        traffic = math.nan, math.nan
        if interfaces is not None:
            traffic = self._network[key].advance(vm.instance.nics, interfaces)
        row = [math.nan] * len(resources.RESOURCES)
        row[_CPU] = cpu_s
        row[_MEMORY] = min(memory, vm.instance.memory_bytes)
        row[_READ], row[_WRITTEN] = disk
        row[_RECEIVED], row[_SENT] = traffic
        return row, stall_s

    def _open_files(self, vm: instance.Incarnation) -> vm_files.VmFiles:
        """Open a VM's files; read the mounts again once per round."""
        if self._mounts is None:
            self._mounts = cgroup.mounts(self._mountinfo.read_bytes())
        return vm_files.VmFiles(
            vm, self._proc, self._mounts, self._descriptors
        )

    def _read_interfaces(self) -> Interfaces | None:
        try:
            return kernel_text.interface_bytes(self._net_dev.read_bytes())
        except OSError:
            return None

    def _forget_absent(self, present: frozenset[str]) -> None:
        for key in self._files.keys() - present:
            self._close_files(key)
        for key in self._network.keys() - present:
            del self._network[key]

    def _close_files(self, key: str) -> None:
        found = self._files.pop(key, None)
        if found is not None:
            found.close()
