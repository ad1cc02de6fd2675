# SPDX-License-Identifier: Apache-2.0

"""Pressure on memory and disks, as the kernel counts it.

Nothing here enters a guest's monitor. Two files per VM are read each round
at most, one more while anything on the node is swapped out.
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
_MOST_DESCRIPTORS = 4096
_RESOLVE_ROUNDS = 30
"""Disks are looked up again after so many rounds, because one may have been
mirrored to another device meanwhile."""


class _Vm:
    """The files of one incarnation.

    :param own: ``/proc/PID`` of the VM.
    :param mounts: of control groups.
    :raises OSError: if the VM has ended, or no descriptor is left to look.
    """

    def __init__(
        self,
        own: pathlib.Path,
        mounts: Mapping[str, cgroup.Mount],
        descriptors: files.Descriptors,
    ) -> None:
        self._own = own
        self._stat = files.KeptFile(str(own / 'stat'), descriptors)
        try:
            self._stall = _pressure_file(own, mounts, descriptors)
        except OSError:
            self._stat.close()
            raise
        self.disks: tuple[pressure.DiskPath, ...] = ()
        self.resolved_round = -_RESOLVE_ROUNDS

    def faulted_bytes(self) -> float:
        try:
            faults = kernel_text.major_faults(self._stat.read())
        except (OSError, ValueError, IndexError):
            return math.nan
        return float(faults * _PAGE_BYTES)

    def stall_s(self) -> float:
        if self._stall is None:
            return math.nan
        try:
            return kernel_text.stall_seconds(self._stall.read())
        except (OSError, ValueError):
            return math.nan

    def swapped_bytes(self) -> float:
        try:
            status = (self._own / 'status').read_bytes()
            return float(kernel_text.swapped_bytes(status))
        except (OSError, ValueError):
            return 0.0

    def close(self) -> None:
        self._stat.close()
        if self._stall is not None:
            self._stall.close()


class PressureReader:
    """Reads what VMs and the node waited for.

    Not for use by several threads at once.

    :param proc: where the process file system is mounted.
    :param sys: where the system file system is mounted.
    :param mountinfo: file that tells what is mounted where.
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
        self._descriptors = files.Descriptors(_MOST_DESCRIPTORS)
        self._vms: dict[str, _Vm] = {}
        self._round = 0

    def read(self, taken: sample.Sample) -> pressure.PressureSample:
        """Read the counters of the VMs of a sample.

        :param taken: in this round; its rows are the rows of the result.
        :returns: NaN where a VM has ended or the kernel does not tell.
        """
        began, vms = self._clock(), taken.incarnations
        self._round += 1
        self._forget(frozenset(item.key for item in vms))
        mounts = cgroup.mounts(self._mountinfo.read_bytes())
        found = [self._found(item, mounts) for item in vms]
        nan = math.nan
        held = taken.totals[:, _MEMORY].copy()
        if self._swaps():
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
        """Close all descriptors."""
        self._forget(frozenset())

    def _found(
        self, item: instance.Incarnation, mounts: Mapping[str, cgroup.Mount]
    ) -> _Vm | None:
        vm = self._vms.get(item.key)
        if vm is None:
            own = self._proc / str(item.pid)
            try:
                vm = _Vm(own, mounts, self._descriptors)
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

    def _swaps(self) -> bool:
        try:
            return kernel_text.swap_in_use(
                (self._proc / 'meminfo').read_bytes()
            )
        except (OSError, ValueError):
            return False

    def _forget(self, present: frozenset[str]) -> None:
        for key in self._vms.keys() - present:
            self._vms.pop(key).close()


def _pressure_file(
    own: pathlib.Path,
    mounts: Mapping[str, cgroup.Mount],
    descriptors: files.Descriptors,
) -> files.KeptFile | None:
    """Open the memory pressure of a VM's own v2 group.

    If the memory controller is in a v1 hierarchy, the v2 group does not count
    waits for the VM's own limit. It counts waits for memory of the node, and
    these are the ones that are needed.

    :raises OSError: if no descriptor is left to look.
    """
    group = vm_files.private_groups(own, mounts).get(cgroup.UNIFIED)
    if group is None:
        return None
    try:
        return files.KeptFile(str(group / 'memory.pressure'), descriptors)
    except OSError as error:
        if files.none_left(error):
            raise
        return None
