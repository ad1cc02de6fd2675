# SPDX-License-Identifier: Apache-2.0

"""On which block devices the disks of VMs are, and who schedules them."""

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

_DEEPEST = 8
_MOST_DEVICES = 32


class BlockDevices:
    """Follows a file to the devices below it.

    A partition stands for its whole device, because only that has a queue. A
    device that is made of others (device mapper, RAID), and a loop device
    over a file, is followed further down, because the kernel charges the VM
    with the requests there, too.

    :param sys: where the system file system is mounted.
    :param mountinfo: tells which device is behind a file system that numbers
        its files itself (Btrfs).
    """

    def __init__(
        self,
        sys: str = '/sys',
        mountinfo: str = '/proc/self/mountinfo',
    ) -> None:
        self._sys = pathlib.Path(sys)
        self._mountinfo = pathlib.Path(mountinfo)

    def disks(self, vm: instance.Instance) -> tuple[pressure.DiskPath, ...]:
        """Find the devices of every disk of a VM.

        :raises OSError: if no descriptor is left to look.
        """
        return tuple(
            pressure.DiskPath(
                disk.target,
                () if disk.network else self.below(disk.source),
            )
            for disk in vm.disks
        )

    def below(self, path: str) -> tuple[str, ...]:
        """The whole devices that requests for a file pass.

        :param path: of a file or of a block device.
        :returns: ``major:minor``, from the top down; empty if there is no
            block device below, or the file cannot be seen.
        :raises OSError: if no descriptor is left to look.
        """
        found: list[str] = []
        self._follow(path, found, _DEEPEST)
        return tuple(found)

    def totals(
        self, number: str, cost_model: bool = False
    ) -> pressure.DeviceTotals | None:
        """Read what a device has done so far, and how it schedules.

        :param number: ``major:minor`` of a whole device.
        :param cost_model: whether it is one of :func:`cost_models`.
        :returns: ``None`` if it is not there any more.
        """
        directory = self._directory(number)
        try:
            busy_s, queued_s = kernel_text.busy_and_queued(
                (directory / 'stat').read_text('ascii')
            )
        except (OSError, ValueError):
            return None
        return pressure.DeviceTotals(
            name=_name(directory),
            scheduler=_scheduler(directory),
            cost_model=cost_model,
            busy_s=busy_s,
            queued_s=queued_s,
        )

    def _follow(self, path: str, found: list[str], left: int) -> None:
        try:
            number = self._number(pathlib.Path(path).stat())
        except OSError as error:
            if files.none_left(error):
                raise
            return
        except ValueError:
            return
        if number is not None:
            self._add(number, found, left)

    def _number(self, status: os.stat_result) -> str | None:
        """The device that is a file, or on which it is."""
        if stat.S_ISBLK(status.st_mode):
            return _numbered(status.st_rdev)
        if os.major(status.st_dev):
            return _numbered(status.st_dev)
        source = kernel_text.source_of_mount(
            self._mountinfo.read_bytes(),
            _numbered(status.st_dev),
        )
        if source is None:
            return None
        below = pathlib.Path(source).stat()
        return (
            _numbered(below.st_rdev) if stat.S_ISBLK(below.st_mode) else None
        )

    def _add(self, number: str, found: list[str], left: int) -> None:
        directory = self._directory(number)
        if (directory / 'partition').exists():
            number = (directory.resolve().parent / 'dev').read_text().strip()
            directory = self._directory(number)
        if number in found or len(found) >= _MOST_DEVICES or left < 1:
            return
        if not directory.exists():
            return
        found.append(number)
        for lower in self._lower(directory):
            self._add(lower, found, left - 1)
        backing = directory / 'loop' / 'backing_file'
        if backing.exists():
            self._follow(backing.read_text().strip(), found, left - 1)

    def _lower(self, directory: pathlib.Path) -> Iterator[str]:
        slaves = directory / 'slaves'
        if slaves.is_dir():
            for slave in sorted(slaves.iterdir()):
                yield (slave / 'dev').read_text().strip()

    def _directory(self, number: str) -> pathlib.Path:
        return self._sys / 'dev' / 'block' / number


def cost_models(mounts: Mapping[str, cgroup.Mount]) -> frozenset[str]:
    """The devices whose weights the kernel keeps by a cost model.

    :param mounts: of control groups; only v2 has such models.
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


def _numbered(device: int) -> str:
    return f'{os.major(device)}:{os.minor(device)}'


def _name(directory: pathlib.Path) -> str:
    return directory.resolve().name


def _scheduler(directory: pathlib.Path) -> str:
    try:
        text = (directory / 'queue' / 'scheduler').read_text('ascii')
    except OSError:
        return ''
    return kernel_text.chosen_scheduler(text)
