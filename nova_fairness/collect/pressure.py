# SPDX-License-Identifier: Apache-2.0

"""Pressure on memory and disks, as counted by the kernel.

Nothing here enters a guest's monitor. At most two files per VM are read in
each round, and a third while any memory of the node is swapped out.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import math
import os
import pathlib
import time

import numpy as np

from nova_fairness.collect import block_devices
from nova_fairness.collect import files
from nova_fairness.collect import kernel_text
from nova_fairness.collect import vm_files
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import pressure
from nova_fairness.model import resources
from nova_fairness.model import sample

_PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')
_MEMORY = resources.RESOURCES.index('memory')
_MAX_DESCRIPTORS = 4096
_RESOLVE_ROUNDS = 30
"""Number of rounds after which disks are resolved again, because a disk
can be mirrored to another device."""


class _VmPressureFiles:
    """The pressure files of one incarnation.

    :param own: ``/proc/PID`` of the VM.
    :param mounts: of control groups.
    :raises OSError: if the VM ended, or no file descriptor is free.
    """

    def __init__(
        self,
        own: pathlib.Path,
        mounts: Mapping[str, cgroup.Mount],
        descriptors: files.DescriptorBudget,
    ) -> None:
        self._own = own
        self._stat = files.OpenFile(str(own / 'stat'), descriptors)
        try:
            self._stall = _pressure_file(own, mounts, descriptors)
        except OSError:
            self._stat.close()
            raise
        self.disks: tuple[pressure.DiskPath, ...] = ()
        self.resolved_round = -_RESOLVE_ROUNDS

    def faulted_bytes(self) -> float:
        """Return the bytes of all major page faults; NaN if unknown."""
        try:
            faults = kernel_text.major_faults(self._stat.read())
        except (OSError, ValueError, IndexError):
            return math.nan
        return float(faults * _PAGE_BYTES)

    def stall_s(self) -> float:
        """Return the seconds in which the VM waited for memory; NaN if
        unknown.
        """
        if self._stall is None:
            return math.nan
        try:
            return kernel_text.stall_seconds(self._stall.read())
        except (OSError, ValueError):
            return math.nan

    def swapped_bytes(self) -> float:
        """Return the bytes that are swapped out; 0 if unknown."""
        try:
            status = (self._own / 'status').read_bytes()
            return float(kernel_text.swapped_bytes(status))
        except (OSError, ValueError):
            return 0.0

    def close(self) -> None:
        """Close the files."""
        self._stat.close()
        if self._stall is not None:
            self._stall.close()


class PressureReader:
    """Reads how long VMs and the node waited for memory and disks.

    It must not be used by several threads at once.

    :param proc: where procfs is mounted.
    :param sys: where sysfs is mounted.
    :param mountinfo: file that lists the mounts.
    :param clock: monotonic seconds.
    """

    def __init__(
        self,
        proc: str = '/proc',
        sys: str = '/sys',
        mountinfo: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = pathlib.Path(proc)
        self._mountinfo = pathlib.Path(mountinfo or f'{proc}/self/mountinfo')
        self._clock = clock
        self._blocks = block_devices.BlockDevices(sys, str(self._mountinfo))
        self._descriptors = files.DescriptorBudget(_MAX_DESCRIPTORS)
        self._vms: dict[str, _VmPressureFiles] = {}
        self._round = 0

    def read(self, vm_sample: sample.Sample) -> pressure.PressureSample:
        """Read the counters of the VMs of a sample.

        :param vm_sample: of this round; its rows are the rows of the result.
        :returns: NaN where a VM ended or the kernel has no counter.
        """
        began, vms = self._clock(), vm_sample.incarnations
        self._round += 1
        self._close_absent(frozenset(item.key for item in vms))
        mounts = cgroup.mounts(self._mountinfo.read_bytes())
        found = [self._open_vm(item, mounts) for item in vms]
        nan = math.nan
        held = vm_sample.totals[:, _MEMORY].copy()
        if self._is_swap_used():
            held += [vm.swapped_bytes() if vm else 0.0 for vm in found]
        disks = tuple(vm.disks if vm else () for vm in found)
        return pressure.PressureSample(
            time_s=began,
            incarnations=vms,
            faulted_bytes=np.array(
                [vm.faulted_bytes() if vm else nan for vm in found],
                dtype=np.float64,
            ),
            memory_stall_s=np.array(
                [vm.stall_s() if vm else nan for vm in found],
                dtype=np.float64,
            ),
            held_bytes=held,
            disks=disks,
            reclaimed_bytes=self._reclaimed_bytes(),
            devices=self._devices(disks, block_devices.cost_models(mounts)),
        )

    def close(self) -> None:
        """Close all file descriptors."""
        self._close_absent(frozenset())

    def _open_vm(
        self, item: instance.Incarnation, mounts: Mapping[str, cgroup.Mount]
    ) -> _VmPressureFiles | None:
        vm = self._vms.get(item.key)
        if vm is None:
            own = self._proc / str(item.pid)
            try:
                vm = _VmPressureFiles(own, mounts, self._descriptors)
            except OSError:
                return None
            self._vms[item.key] = vm
        if self._round - vm.resolved_round >= _RESOLVE_ROUNDS:
            # Without descriptors those known stay, and are looked up later.
            with contextlib.suppress(OSError):
                vm.disks = self._blocks.disks(item.instance)
                vm.resolved_round = self._round
        return vm

    def _devices(
        self,
        disks: tuple[tuple[pressure.DiskPath, ...], ...],
        cost_models: frozenset[str],
    ) -> dict[str, pressure.DeviceTotals]:
        numbers = {
            number for own in disks for disk in own for number in disk.devices
        }
        found: dict[str, pressure.DeviceTotals] = {}
        for number in sorted(numbers):
            totals = self._blocks.totals(number, number in cost_models)
            if totals is not None:
                found[number] = totals
        return found

    def _reclaimed_bytes(self) -> float:
        try:
            text = (self._proc / 'vmstat').read_bytes()
            return float(kernel_text.reclaimed_pages(text) * _PAGE_BYTES)
        except (OSError, ValueError):
            return math.nan

    def _is_swap_used(self) -> bool:
        try:
            return kernel_text.swap_in_use(
                (self._proc / 'meminfo').read_bytes()
            )
        except (OSError, ValueError):
            return False

    def _close_absent(self, present: frozenset[str]) -> None:
        for key in self._vms.keys() - present:
            self._vms.pop(key).close()


def _pressure_file(
    own: pathlib.Path,
    mounts: Mapping[str, cgroup.Mount],
    descriptors: files.DescriptorBudget,
) -> files.OpenFile | None:
    """Open the memory pressure file of a VM's own v2 group.

    If the memory controller is in a v1 hierarchy, the v2 group counts only
    waits for memory of the node, not for the VM's own limit. These are the
    waits that matter.

    :raises OSError: if no file descriptor is free.
    """
    group = vm_files.private_groups(own, mounts).get(cgroup.UNIFIED)
    if group is None:
        return None
    try:
        return files.OpenFile(str(group / 'memory.pressure'), descriptors)
    except OSError as error:
        if files.no_descriptor_free(error):
            raise
        return None
