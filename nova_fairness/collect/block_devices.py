# SPDX-License-Identifier: Apache-2.0

"""The block devices below the disks of VMs, and their I/O schedulers."""

from collections.abc import Iterator
from collections.abc import Mapping
import os
import pathlib
import stat

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import pressure

_MAX_DEPTH = 8
_MAX_DEVICES = 32


class BlockDevices:
    """Finds the block devices below a file.

    A partition counts as its whole device, because only that has a queue.
    Devices below a device (device mapper, RAID) or below a loop device are
    included, because the kernel charges the VM with the requests there, too.

    :param sys: where sysfs is mounted.
    :param mountinfo: file that names the device of a file system with its own
        device numbers (Btrfs).
    """

    def __init__(
        self,
        sys: str = '/sys',
        mountinfo: str = '/proc/self/mountinfo',
    ) -> None:
        self._sys = pathlib.Path(sys)
        self._mountinfo = pathlib.Path(mountinfo)

    def disks(self, vm: instance.Instance) -> tuple[pressure.DiskPath, ...]:
        """Return the devices of every disk of a VM.

        :raises OSError: if no file descriptor is free.
        """
        return tuple(
            pressure.DiskPath(
                disk.target,
                () if disk.network else self.devices_of(disk.source),
            )
            for disk in vm.disks
        )

    def devices_of(self, path: str) -> tuple[str, ...]:
        """Return the whole devices that process requests for a file.

        :param path: of a file or of a block device.
        :returns: ``major:minor``, from the top down; empty if there is no
            block device, or the file is not visible.
        :raises OSError: if no file descriptor is free.
        """
        found: list[str] = []
        self._add_devices_of(path, found, _MAX_DEPTH)
        return tuple(found)

    def totals(
        self, number: str, cost_model: bool = False
    ) -> pressure.DeviceTotals | None:
        """Read the total I/O times of a device, and its scheduler.

        :param number: ``major:minor`` of a whole device.
        :param cost_model: whether it is one of :func:`cost_models`.
        :returns: ``None`` if it does not exist any more.
        """
        directory = self._directory(number)
        try:
            busy_s, queued_s = kernel_text.parse_device_times(
                (directory / 'stat').read_text('ascii')
            )
        except (OSError, ValueError):
            return None
        return pressure.DeviceTotals(
            name=_device_name(directory),
            scheduler=_scheduler_of(directory),
            cost_model=cost_model,
            busy_s=busy_s,
            queued_s=queued_s,
        )

    def _add_devices_of(self, path: str, found: list[str], left: int) -> None:
        try:
            number = self._device_of(pathlib.Path(path).stat())
        except OSError as error:
            if files.no_descriptor_free(error):
                raise
            return
        except ValueError:
            return
        if number is not None:
            self._add_device(number, found, left)

    def _device_of(self, status: os.stat_result) -> str | None:
        """Return the number of the device that is, or contains, a file."""
        if stat.S_ISBLK(status.st_mode):
            return _device_number(status.st_rdev)
        if os.major(status.st_dev):
            return _device_number(status.st_dev)
        source = kernel_text.device_of_mount(
            self._mountinfo.read_bytes(),
            _device_number(status.st_dev),
        )
        if source is None:
            return None
        below = pathlib.Path(source).stat()
        return (
            _device_number(below.st_rdev)
            if stat.S_ISBLK(below.st_mode)
            else None
        )

    def _add_device(self, number: str, found: list[str], left: int) -> None:
        directory = self._directory(number)
        if (directory / 'partition').exists():
            number = (directory.resolve().parent / 'dev').read_text().strip()
            directory = self._directory(number)
        if number in found or len(found) >= _MAX_DEVICES or left < 1:
            return
        if not directory.exists():
            return
        found.append(number)
        for lower in self._lower_devices(directory):
            self._add_device(lower, found, left - 1)
        backing = directory / 'loop' / 'backing_file'
        if backing.exists():
            self._add_devices_of(backing.read_text().strip(), found, left - 1)

    def _lower_devices(self, directory: pathlib.Path) -> Iterator[str]:
        slaves = directory / 'slaves'
        if slaves.is_dir():
            for slave in sorted(slaves.iterdir()):
                yield (slave / 'dev').read_text().strip()

    def _directory(self, number: str) -> pathlib.Path:
        return self._sys / 'dev' / 'block' / number


def cost_models(mounts: Mapping[str, cgroup.Mount]) -> frozenset[str]:
    """Return the devices for which the kernel applies weights by a cost model.

    :param mounts: of control groups; only v2 has cost models.
    :returns: ``major:minor``.
    """
    unified = mounts.get(cgroup.UNIFIED)
    if unified is None:
        return frozenset()
    try:
        path = pathlib.Path(unified.path) / 'io.cost.qos'
        return kernel_text.enabled_devices(path.read_text('ascii'))
    except OSError:
        return frozenset()


def _device_number(device: int) -> str:
    return f'{os.major(device)}:{os.minor(device)}'


def _device_name(directory: pathlib.Path) -> str:
    return directory.resolve().name


def _scheduler_of(directory: pathlib.Path) -> str:
    try:
        text = (directory / 'queue' / 'scheduler').read_text('ascii')
    except OSError:
        return ''
    return kernel_text.active_scheduler(text)
