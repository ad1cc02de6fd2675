# SPDX-License-Identifier: Apache-2.0

"""Controls that are one file of each VM's own control group."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import os
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources

Writer = Callable[[Sequence[privileged.Request]], list[int]]


class GroupControl(control.Control):
    """Steers the group of each VM by one file; subclasses say which.

    :param proc: where procfs is mounted.
    :param mounts: by controller, as :func:`cgroup.mounts` gives them.
    :param name: the file, one of :data:`files.FILES`.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: at most so many descriptors are kept between reads.
    """

    def __init__(
        self,
        proc: str,
        mounts: Mapping[str, cgroup.Mount],
        name: str,
        writer: Writer = privileged.write_controls,
        max_open: int = 4096,
    ) -> None:
        self._name = name
        self._file = files.FILES[name]
        self._open = files.OpenControls(
            proc, mounts, name, max_open, self.parsed
        )
        self._writer = writer
        self._named: set[str] = set()
        self._problems: dict[str, str] = {}

    def availability(self) -> tuple[bool, str]:
        """Tell by which file VMs are steered."""
        return True, self._name

    @property
    def name(self) -> str:
        """The file that is read and written."""
        return self._name

    @property
    def version(self) -> int:
        """Version of control groups that the file belongs to: 1 or 2."""
        return 2 if self._file.controller == cgroup.UNIFIED else 1

    def parsed(self, content: bytes) -> int:
        """The value that a file's content says.

        :raises ValueError: if it says none.
        """
        # A control is one line; what a shorter value leaves behind it is no
        # part of it.
        return int(content.partition(b'\n')[0])

    def formatted(self, value: int) -> str:
        """Text that is written for a value."""
        return str(value)

    def unit_range(self) -> tuple[int, int]:
        """The smallest and largest value that the kernel accepts."""
        return self._file.lowest, self._file.highest

    def default(self) -> int:
        """Value that the kernel sets in a new group."""
        return self._file.default

    def problems(self) -> tuple[str, ...]:
        """Name VMs that cannot be steered, each once while it is seen."""
        fresh = sorted(self._problems.items())
        self._named.update(self._problems)
        self._problems = {}
        return tuple(f'{key}: {text}' for key, text in fresh)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds now, from descriptors kept open.

        :param keys: of incarnations.
        :returns: kernel units by key; absent are VMs that vanished and
            those that cannot be steered, see :meth:`problems`.
        """
        self._open.next_round(len(keys))
        if len(self._named) > len(keys):
            self._named.intersection_update(keys)
        values: dict[str, int] = {}
        for key in keys:
            try:
                value = self._held(key)
                if value is not None:
                    values[key] = value
            except exception.WriteRefused as error:
                if key not in self._named:
                    self._problems[key] = str(error)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write each change, in one call of the privileged helper.

        The value is read back: the kernel bounds some without saying so.

        :param changes: for this control.
        :returns: one outcome per change, in order.
        """
        outcomes = [self._refused(change) for change in changes]
        places = [i for i, known in enumerate(outcomes) if known is None]
        written = self._write([changes[place] for place in places])
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def close(self) -> None:
        """Close all descriptors; the control can still be used."""
        self._open.close()

    def _held(self, key: str) -> int | None:
        """Read one VM; ``None`` if it is gone.

        :raises WriteRefused: if it has no such control, or an odd value.
        """
        value = self._open.read(key)
        return None if value is None else self._checked(value)

    def _checked(self, value: int) -> int:
        low, high = self.unit_range()
        if low <= value <= high:
            return value
        raise exception.WriteRefused(
            f'{self._name} is {value}, expected {low}..{high}; the group is '
            f'left alone'
        )

    def _refused(
        self, change: allocation.Change
    ) -> control.ApplyResult | None:
        """The outcome of a change that need not be tried."""
        low, high = self.unit_range()
        if not low <= change.after <= high:
            return control.ApplyResult(
                change,
                f'{self._name} of {change.knob.incarnation} cannot be '
                f'{change.after}, expected {low}..{high}',
            )
        return None

    def _write(
        self, changes: Sequence[allocation.Change]
    ) -> list[control.ApplyResult]:
        parts = [self._requests(change) for change in changes]
        requests = [request for part in parts for request in part]
        try:
            errors = iter(self._writer(requests) if requests else [])
        except exception.ControlUnavailable as error:
            return [
                control.ApplyResult(change, str(error)) for change in changes
            ]
        numbers = [[next(errors) for _ in part] for part in parts]
        return [
            self._outcome(change, next(filter(None, each), 0))
            for change, each in zip(changes, numbers, strict=True)
        ]

    def _requests(self, change: allocation.Change) -> list[privileged.Request]:
        """Requests that write a change, in order."""
        _, pid, ticks = instance.parse_key(change.knob.incarnation)
        return [(self._name, self.formatted(change.after), pid, ticks)]

    def _outcome(
        self, change: allocation.Change, number: int
    ) -> control.ApplyResult:
        """Judge one write by its error number and by what is there now."""
        try:
            kept = self._held(change.knob.incarnation)
        except exception.WriteRefused as error:
            return self._failed(change, str(error))
        if kept is None:
            return control.ApplyResult(change, gone=True)
        if number:
            return self._failed(change, os.strerror(number))
        if kept != change.after:
            return self._failed(change, f'the kernel made it {kept}')
        return control.ApplyResult(change)

    def _failed(
        self, change: allocation.Change, reason: str
    ) -> control.ApplyResult:
        key = change.knob.incarnation
        self._open.forget(key)
        if self._open.is_gone(key):
            return control.ApplyResult(change, gone=True)
        return control.ApplyResult(
            change, f'{self._name} of {key} = {change.after}: {reason}'
        )


def has_unified(mounts: Mapping[str, cgroup.Mount], controller: str) -> bool:
    """Tell whether cgroup v2 has a controller on this host.

    :raises ControlUnavailable: if that cannot be read.
    """
    unified = mounts.get(cgroup.UNIFIED)
    if unified is None:
        return False
    path = pathlib.Path(unified.path) / 'cgroup.controllers'
    try:
        return controller in path.read_text('ascii').split()
    except OSError as error:
        raise exception.ControlUnavailable(
            f'cannot read which controllers cgroup v2 has: {error}'
        ) from error


def version_of(
    mounts: Mapping[str, cgroup.Mount], first: str, second: str, missing: str
) -> int:
    """Version of control groups that has a controller on this host, 1 or 2.

    A controller is in one hierarchy only. If v1 has it, the version is 1, also
    if a v2 tree is mounted.

    :param first: name of the controller in v1.
    :param second: name of the controller in v2.
    :param missing: text of the error if neither version has it.
    :raises ControlUnavailable: if neither version has it.
    """
    if first in mounts:
        return 1
    if has_unified(mounts, second):
        return 2
    raise exception.ControlUnavailable(missing)


_IDLE_SHOWS = {files.CPU_SHARES: 3, files.CPU_WEIGHT: 0}
"""Values of the files of an idle group (Linux 5.15 and later)."""


class CpuShares(GroupControl):
    """Steers the group of each VM; all of its threads share one value.

    A controller is in one hierarchy only: where v1 has ``cpu``, v1 it is,
    also if a v2 tree without it is mounted beside.

    :data:`allocation.IDLE` stands for ``cpu.idle``. A group takes no shares
    while it is idle. After that it has the default shares.

    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: at most so many descriptors are kept between reads.
    :raises ControlUnavailable: if this host has no CPU controller.
    """

    kind = resources.ResourceControl.CPU

    def __init__(
        self,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: Writer = privileged.write_controls,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_bytes())
        super().__init__(proc, mounts, _cpu_file(mounts), writer, max_open)
        self._idle = files.OpenControls(proc, mounts, files.CPU_IDLE, max_open)

    def can_idle(self, key: str) -> bool:
        """Tell whether the kernel lets a VM be idle."""
        try:
            return self._idle.read(key) is not None
        except exception.WriteRefused:
            return False

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what the kernel holds now."""
        self._idle.next_round(len(keys))
        return super().read(keys)

    def close(self) -> None:
        """Close all descriptors; the control can still be used."""
        super().close()
        self._idle.close()

    def _held(self, key: str) -> int | None:
        value = self._open.read(key)
        if value == _IDLE_SHOWS[self._name] and self._is_idle(key):
            return allocation.IDLE
        return None if value is None else self._checked(value)

    def _is_idle(self, key: str) -> bool:
        return self.can_idle(key) and self._idle.read(key) == 1

    def _refused(
        self, change: allocation.Change
    ) -> control.ApplyResult | None:
        if change.after == allocation.IDLE and self.can_idle(
            change.knob.incarnation
        ):
            return None
        return super()._refused(change)

    def _requests(self, change: allocation.Change) -> list[privileged.Request]:
        key = change.knob.incarnation
        _, pid, ticks = instance.parse_key(key)
        if change.after == allocation.IDLE:
            return [(files.CPU_IDLE, '1', pid, ticks)]
        wakes: list[privileged.Request] = (
            [(files.CPU_IDLE, '0', pid, ticks)] if self._wakes(change) else []
        )
        return [*wakes, *super()._requests(change)]

    def _wakes(self, change: allocation.Change) -> bool:
        if change.before is None:
            return self._is_idle(change.knob.incarnation)
        return change.before == allocation.IDLE


def _cpu_file(mounts: Mapping[str, cgroup.Mount]) -> str:
    """Name of the file that steers the CPU on this host."""
    version = version_of(
        mounts,
        files.FILES[files.CPU_SHARES].controller,
        files.CPU_CONTROLLER,
        'no CPU controller is mounted; expected it in a cgroup v1 hierarchy '
        'or in cgroup.controllers of the v2 hierarchy',
    )
    return files.CPU_SHARES if version == 1 else files.CPU_WEIGHT
