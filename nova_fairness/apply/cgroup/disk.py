# SPDX-License-Identifier: Apache-2.0

"""Weights of VMs' block I/O: v1 ``blkio.*weight``, v2 ``io.*weight``.

A weight has an effect only on a device whose scheduler supports weights (BFQ,
or the cost model of v2). VMs without such a disk are not steered, and the
control reports the cause.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import logging
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import pressure
from nova_fairness.model import resources

LOG = logging.getLogger(__name__)

FILES = (
    files.BLKIO_BFQ_WEIGHT,
    files.BLKIO_WEIGHT,
    files.IO_BFQ_WEIGHT,
    files.IO_WEIGHT,
)
"""The files in the sequence of preference; a record stores the index."""

LOWEST, HIGHEST, NEUTRAL = 1, 1000, 100

_NO_DEVICE = 'no disk has an I/O scheduler with weights'

Source = Callable[[], pressure.PressureSample | None]


class _WeightFile(group_control.GroupControl):
    """Weights in one file of each VM's group."""

    kind = resources.ResourceControl.DISK

    def parsed(self, content: bytes) -> int:
        """Return the weight for all devices, from either format of the
        file.
        """
        line = content.partition(b'\n')[0].strip()
        return int(line.removeprefix(b'default').strip())


class DiskWeight(control.Control):
    """Steers the block I/O of each VM by the file that its devices support.

    A VM keeps the file that was first written for it until that is restored,
    also if its device changes the scheduler.

    :param record: of the file that steers each VM, loaded; ``None`` stores it
        in memory only.
    :param source: returns the newest reading of disks and devices, ``None``
        before the first. Until then only VMs in the record are known.
    :param proc: where procfs is mounted.
    :param mountinfo_path: file that lists the mounted hierarchies.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: largest number of descriptors per file that stay open.
    :raises ControlUnavailable: if this host has no block I/O controller.
    """

    kind = resources.ResourceControl.DISK

    def __init__(
        self,
        record: found_values.FoundValues | None = None,
        source: Source = lambda: None,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: group_control.Writer = privileged.write_controls,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_bytes())
        self._files = {
            name: _WeightFile(proc, mounts, name, writer, max_open)
            for name in weight_files(mounts)
        }
        self._source = source
        self._record = record
        self._chosen: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._reported: set[str] = set()
        self._failed: set[str] = set()
        if record is not None:
            self._chosen = {
                knob.incarnation: FILES[place]
                for knob, place in record.values.items()
                if FILES[place] in self._files
            }

    def unit_range(self) -> tuple[int, int]:
        """Return 1 and 1000, which all of the kernel's weight files accept."""
        return LOWEST, HIGHEST

    def default(self) -> int:
        """Return the value that the kernel sets in a new group."""
        return NEUTRAL

    def availability(self) -> tuple[bool, str]:
        """Return whether any device of a VM supports weights now, and the
        cause.
        """
        names = ', '.join(dict.fromkeys(self._chosen.values()))
        if names:
            return True, names
        if self._reasons:
            said = sorted(set(self._reasons.values()))
            return False, '; '.join(said)
        return True, ' or '.join(self._files)

    def file_of(self, key: str) -> str:
        """Return the name of the file that steers a VM.

        :returns: the host's preferred file for a VM that is not steered.
        """
        return self._chosen.get(key, next(iter(self._files)))

    def without_effect(self) -> Mapping[str, str]:
        """Return why a weight has no effect on some VMs, by key."""
        return dict(self._reasons)

    def problems(self) -> tuple[str, ...]:
        """Return errors of VMs that cannot be steered, each once per VM."""
        return tuple(
            text for item in self._files.values() for text in item.problems()
        )

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present weights.

        :returns: weights by key, without VMs that vanished and VMs on whose
            disks a weight has no effect.
        """
        self._choose_files(self._source(), keys)
        values: dict[str, int] = {}
        for name, item in self._files.items():
            own = [key for key in keys if self._chosen.get(key) == name]
            values.update(item.read(own))
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write each change, after its file is recorded."""
        try:
            self._record_files(changes)
        except exception.StateError as error:
            return tuple(
                control.ApplyResult(change, str(error)) for change in changes
            )
        outcomes: dict[int, control.ApplyResult] = {}
        for name, item in self._files.items():
            places = [
                place
                for place, change in enumerate(changes)
                if self._chosen.get(change.knob.incarnation) == name
            ]
            written = item.write([changes[place] for place in places])
            outcomes.update(zip(places, written, strict=True))
        done = tuple(
            outcomes.get(place) or self._without_effect_result(change)
            for place, change in enumerate(changes)
        )
        for outcome in done:
            key = outcome.change.knob.incarnation
            if outcome.error:
                self._failed.add(key)
            else:
                self._failed.discard(key)
        return done

    def release(self) -> tuple[str, ...]:
        """Delete the records of VMs that are restored."""
        if self._record is None:
            return ()
        self._record.forget(
            [
                knob
                for knob in self._record.values
                if knob.incarnation not in self._failed
            ]
        )
        try:
            self._record.flush()
        except exception.StateError as error:
            return (str(error),)
        return ()

    def close(self) -> None:
        """Close all file descriptors; the control can still be used."""
        for item in self._files.values():
            item.close()

    def _choose_files(
        self, sample: pressure.PressureSample | None, keys: Sequence[str]
    ) -> None:
        """Choose the file of each VM that has none."""
        if sample is None:
            return
        rows = {item.key: row for row, item in enumerate(sample.incarnations)}
        self._reasons = {}
        for key in keys:
            if key not in rows:
                continue
            disks = sample.disks[rows[key]]
            file = self._effective_file(disks, sample.devices)
            if file is not None:
                if not self._is_recorded(key):
                    self._chosen[key] = file
                continue
            self._report_without_effect(
                key, _cause_without_effect(disks, sample.devices)
            )
            if not self._is_recorded(key):
                self._chosen.pop(key, None)
        self._forget_absent(set(rows))

    def _effective_file(
        self,
        disks: Sequence[pressure.DiskPath],
        devices: Mapping[str, pressure.DeviceTotals],
    ) -> str | None:
        return next(
            (
                name
                for name in self._files
                if any(
                    pressure.is_weighed(disk, devices, name) for disk in disks
                )
            ),
            None,
        )

    def _is_recorded(self, key: str) -> bool:
        return self._record is not None and _knob(key) in self._record.values

    def _report_without_effect(self, key: str, reason: str) -> None:
        """Store why a VM is not steered; log each cause once."""
        self._reasons[key] = f'without effect: {reason}'
        if reason not in self._reported:
            self._reported.add(reason)
            LOG.warning('weights of disks are without effect: %s', reason)

    def _forget_absent(self, present: set[str]) -> None:
        for key in self._chosen.keys() - present:
            del self._chosen[key]
        if self._record is not None:
            self._record.forget(
                knob
                for knob in self._record.values
                if knob.incarnation not in present
            )

    def _record_files(self, changes: Sequence[allocation.Change]) -> None:
        if self._record is not None:
            self._record.remember(
                {
                    change.knob: FILES.index(
                        self._chosen[change.knob.incarnation]
                    )
                    for change in changes
                    if change.knob.incarnation in self._chosen
                }
            )

    def _without_effect_result(
        self, change: allocation.Change
    ) -> control.ApplyResult:
        key = change.knob.incarnation
        return control.ApplyResult(
            change,
            f'{self.kind.value} of {key}: '
            f'{self._reasons.get(key, _NO_DEVICE)}',
        )


def _cause_without_effect(
    disks: Sequence[pressure.DiskPath],
    devices: Mapping[str, pressure.DeviceTotals],
) -> str:
    reasons = [
        pressure.reason_without_weights(disk, devices) for disk in disks
    ]
    return ', '.join(dict.fromkeys(reasons)) or 'no disk'


def _knob(key: str) -> allocation.Knob:
    return allocation.Knob(key, resources.ResourceControl.DISK)


def weight_files(mounts: Mapping[str, cgroup.Mount]) -> tuple[str, ...]:
    """Return the names of the weight files, by the controller's hierarchy."""
    version = group_control.version_of(
        mounts,
        'blkio',
        'io',
        'no controller of block I/O is mounted; expected blkio in a cgroup '
        'v1 hierarchy or io in cgroup.controllers of the v2 hierarchy',
    )
    if version == 1:
        return files.BLKIO_BFQ_WEIGHT, files.BLKIO_WEIGHT
    return files.IO_BFQ_WEIGHT, files.IO_WEIGHT
