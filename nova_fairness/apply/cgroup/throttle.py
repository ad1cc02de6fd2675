# SPDX-License-Identifier: Apache-2.0

"""Limits the rates of disks whose devices ignore weights.

It is off unless configured, and in force only while VMs compete: unlike a
weight, a limit also applies when no other VM uses the device. A device is
limited only if the VM has no other limit on it.
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
"""Smallest relative change of a limit that is written."""

_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.ENODEV})


class DiskThrottle:
    """Writes rate limits to the groups of VMs, and removes them.

    :param record: of the limits in force, loaded; it survives a crash of the
        agent.
    :param proc: where procfs is mounted.
    :param mountinfo_path: file that lists the mounted hierarchies.
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
        self._limit_files = _limit_files(self._mounts)
        self._last: dict[Place, Rates] = {}

    @property
    def in_force(self) -> tuple[Place, ...]:
        """The VMs and devices that this agent limits, sorted."""
        return tuple(
            sorted(map(found_values.split_knob_key, self._record.values))
        )

    def apply(self, limits: Mapping[Place, Rates]) -> tuple[str, ...]:
        """Write these limits, and remove all other limits of this agent.

        :returns: error messages, each about one VM and device.
        """
        problems = self._remove_limits(
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
        problems += self._write_limits(changed)
        return tuple(problems)

    def lift(self) -> tuple[str, ...]:
        """Remove all limits of this agent.

        :returns: error messages; limits with an error stay recorded.
        """
        return (
            tuple(self._remove_limits(self.in_force)) if self.in_force else ()
        )

    def _remove_limits(self, places: Sequence[Place]) -> list[str]:
        if not places:
            return []
        problems = self._write_limits(dict.fromkeys(places, (0, 0)))
        try:
            self._record.flush()
        except exception.StateError as error:
            problems.append(str(error))
        return problems

    def _write_limits(self, limits: Mapping[Place, Rates]) -> list[str]:
        """Write limits, 0 for none; delete records of removed or vanished
        ones.
        """
        requests: list[privileged.Request] = []
        for (key, device), rates in limits.items():
            _, pid, ticks = instance.parse_key(key)
            requests += [
                (name, text, pid, ticks)
                for name, text in self._file_texts(device, rates)
            ]
        try:
            results = self._writer(requests) if requests else []
        except exception.ControlUnavailable as error:
            return [str(error)]
        problems: list[str] = []
        for number, (place, rates) in enumerate(limits.items()):
            count = len(self._limit_files)
            codes = results[number * count : (number + 1) * count]
            problems += self._errors_of_write(place, rates, codes)
        return problems

    def _errors_of_write(
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

    def _file_texts(self, device: str, rates: Rates) -> list[tuple[str, str]]:
        if self._limit_files == (files.IO_MAX,):
            read, written = (rate or 'max' for rate in rates)
            return [(files.IO_MAX, f'{device} rbps={read} wbps={written}')]
        return [
            (name, f'{device} {rate}')
            for name, rate in zip(self._limit_files, rates, strict=True)
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
        """Check whether a VM has a limit of another program on a device.

        It returns ``True`` if that cannot be read, so that the device stays
        unchanged.
        """
        key, device = place
        _, pid, _ = instance.parse_key(key)
        try:
            for name in self._limit_files:
                path = files.control_path(self._proc, self._mounts, pid, name)
                text = pathlib.Path(path).read_text('ascii')
                if any(
                    line.split()[:1] == [device] for line in text.splitlines()
                ):
                    return True
        except (OSError, exception.WriteRefused):
            return True
        return False


def _limit_files(mounts: Mapping[str, cgroup.Mount]) -> tuple[str, ...]:
    if 'blkio' in mounts:
        return files.BLKIO_READ_BPS, files.BLKIO_WRITE_BPS
    if control.has_unified(mounts, 'io'):
        return (files.IO_MAX,)
    raise exception.ControlUnavailable(
        'no controller of block I/O is mounted, so disks cannot be throttled'
    )


def _knob(place: Place) -> allocation.Knob:
    """Return the identifier of a limit in the record."""
    return found_values.knob_of_part(*place, resources.ResourceControl.DISK)
