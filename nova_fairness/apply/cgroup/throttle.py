# SPDX-License-Identifier: Apache-2.0

"""Limits of rates for disks whose devices keep no weights.

Off unless configured, and in force only while VMs compete: a limit, unlike a
weight, also holds when no other VM wants the device. A device is touched only
if the VM has no other limit on it. To lift a limit is to remove it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import errno
import os
import pathlib

from nova_fairness import exception
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources

Place = tuple[str, str]
"""Key of an incarnation, and ``major:minor`` of a whole device."""

Rates = tuple[int, int]
"""Bytes per second that may be read, and written."""

TOLERANCE = 0.05
"""A limit that would change by less than this part of it is left."""

_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.ENODEV})


class DiskThrottle:
    """Keeps limits of rates in the groups of VMs, and takes them back.

    :param record: of the limits that are in force, loaded. After a crash with
        limits in force the agent finds them there.
    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :raises ControlUnavailable: if this host has no block I/O controller.
    """

    def __init__(
        self,
        record: found_values.FoundValues,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: control.Writer = privileged.write_controls,
    ) -> None:
        self._record = record
        self._proc = proc
        self._writer = writer
        mountinfo = pathlib.Path(mountinfo_path).read_bytes()
        self._mounts = cgroup.mounts(mountinfo)
        self._files = _files(self._mounts)
        self._last: dict[Place, Rates] = {}

    @property
    def in_force(self) -> tuple[Place, ...]:
        """Where limits of ours are, sorted."""
        return tuple(sorted(map(found_values.part_of, self._record.values)))

    def apply(self, limits: Mapping[Place, Rates]) -> tuple[str, ...]:
        """Bring limits into force, and lift all others of ours.

        :returns: what went wrong, each about one VM and device.
        """
        problems = self._lift(
            [place for place in self.in_force if place not in limits]
        )
        fresh = [place for place in sorted(limits) if not self._is_ours(place)]
        free = [place for place in fresh if not self._has_limit(place)]
        try:
            self._record.remember({_knob(place): 0 for place in free})
        except exception.StateError as error:
            return (*problems, str(error))
        changed = {
            place: limits[place]
            for place in sorted(limits)
            if self._is_ours(place) and self._differs(place, limits[place])
        }
        problems += self._write(changed)
        return tuple(problems)

    def lift(self) -> tuple[str, ...]:
        """Remove every limit of ours.

        :returns: what went wrong; that stays recorded.
        """
        return tuple(self._lift(self.in_force)) if self.in_force else ()

    def _lift(self, places: Sequence[Place]) -> list[str]:
        if not places:
            return []
        problems = self._write(dict.fromkeys(places, (0, 0)))
        try:
            self._record.flush()
        except exception.StateError as error:
            problems.append(str(error))
        return problems

    def _write(self, limits: Mapping[Place, Rates]) -> list[str]:
        """Write limits, 0 for none; forget those that are gone or lifted."""
        requests: list[privileged.Request] = []
        for (key, device), rates in limits.items():
            _, pid, ticks = instance.parse_key(key)
            requests += [
                (name, text, pid, ticks)
                for name, text in self._texts(device, rates)
            ]
        try:
            results = self._writer(requests) if requests else []
        except exception.ControlUnavailable as error:
            return [str(error)]
        problems: list[str] = []
        for number, (place, rates) in enumerate(limits.items()):
            count = len(self._files)
            codes = results[number * count : (number + 1) * count]
            problems += self._judged(place, rates, codes)
        return problems

    def _judged(
        self, place: Place, rates: Rates, codes: Sequence[int]
    ) -> list[str]:
        # A device that is gone has no limits either.
        gone = all(code in _GONE for code in codes)
        failed = [code for code in codes if code and code not in _GONE]
        if failed:
            what = f'limits of {place[0]} on device {place[1]}'
            return [f'{what}: {os.strerror(failed[0])}']
        if gone or rates == (0, 0):
            self._last.pop(place, None)
            self._record.forget([_knob(place)])
        else:
            self._last[place] = rates
        return []

    def _texts(self, device: str, rates: Rates) -> list[tuple[str, str]]:
        if self._files == (files.IO_MAX,):
            read, written = (rate or 'max' for rate in rates)
            return [(files.IO_MAX, f'{device} rbps={read} wbps={written}')]
        return [
            (name, f'{device} {rate}')
            for name, rate in zip(self._files, rates, strict=True)
        ]

    def _is_ours(self, place: Place) -> bool:
        return _knob(place) in self._record.values

    def _differs(self, place: Place, rates: Rates) -> bool:
        last = self._last.get(place)
        return last is None or any(
            abs(new - old) > TOLERANCE * old
            for new, old in zip(rates, last, strict=True)
        )

    def _has_limit(self, place: Place) -> bool:
        """Tell whether a VM has a foreign limit on a device.

        One that cannot be asked is not touched.
        """
        key, device = place
        _, pid, _ = instance.parse_key(key)
        try:
            for name in self._files:
                path = files.control_path(self._proc, self._mounts, pid, name)
                text = pathlib.Path(path).read_text('ascii')
                if any(
                    line.split()[:1] == [device] for line in text.splitlines()
                ):
                    return True
        except (OSError, exception.WriteRefused):
            return True
        return False


def _files(mounts: Mapping[str, cgroup.Mount]) -> tuple[str, ...]:
    if 'blkio' in mounts:
        return files.BLKIO_READ_BPS, files.BLKIO_WRITE_BPS
    if control.has_unified(mounts, 'io'):
        return (files.IO_MAX,)
    raise exception.ControlUnavailable(
        'no controller of block I/O is mounted, so no disk can be throttled'
    )


def _knob(place: Place) -> allocation.Knob:
    """The name of a limit in the record."""
    return found_values.knob_of_part(*place, resources.ResourceControl.DISK)
