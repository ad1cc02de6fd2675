# SPDX-License-Identifier: Apache-2.0

"""Controls that consist of one file in each VM's own control group."""

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
    """Steers each VM by one file of its control group; subclasses name the
    file.

    :param proc: where procfs is mounted.
    :param mounts: by controller, as returned by :func:`cgroup.mounts`.
    :param name: of the file, one of :data:`files.FILES`.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: largest number of file descriptors that stay open.
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
        self._open_files = files.OpenControls(
            proc, mounts, name, max_open, self.parsed
        )
        self._writer = writer
        self._reported: set[str] = set()
        self._problems: dict[str, str] = {}

    def availability(self) -> tuple[bool, str]:
        """Return that the control works, with the name of its file."""
        return True, self._name

    @property
    def name(self) -> str:
        """The name of the file that is read and written."""
        return self._name

    @property
    def version(self) -> int:
        """The version of control groups that the file belongs to: 1 or 2."""
        return 2 if self._file.controller == cgroup.UNIFIED else 1

    def parsed(self, content: bytes) -> int:
        """Return the value in a file's content.

        :raises ValueError: if the content has no value.
        """
        # A control is one line; what a shorter value leaves behind it is no
        # part of it.
        return int(content.partition(b'\n')[0])

    def formatted(self, value: int) -> str:
        """Return the text that is written for a value."""
        return str(value)

    def unit_range(self) -> tuple[int, int]:
        """Return the smallest and the largest value that the kernel
        accepts.
        """
        return self._file.lowest, self._file.highest

    def default(self) -> int:
        """Return the value that the kernel sets in a new group."""
        return self._file.default

    def problems(self) -> tuple[str, ...]:
        """Return errors of VMs that cannot be steered, each once per VM."""
        fresh = sorted(self._problems.items())
        self._reported.update(self._problems)
        self._problems = {}
        return tuple(f'{key}: {text}' for key, text in fresh)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present values from files that stay open.

        :param keys: of incarnations.
        :returns: kernel units by key, without VMs that vanished or cannot be
            steered; see :meth:`problems`.
        """
        self._open_files.next_round(len(keys))
        if len(self._reported) > len(keys):
            self._reported.intersection_update(keys)
        values: dict[str, int] = {}
        for key in keys:
            try:
                value = self._read_value(key)
                if value is not None:
                    values[key] = value
            except exception.WriteRefused as error:
                if key not in self._reported:
                    self._problems[key] = str(error)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write each change, in one call of the privileged helper.

        Each value is read back, because the kernel limits some without an
        error.

        :param changes: for this control.
        :returns: one result per change, in the same sequence.
        """
        outcomes = [self._refused_result(change) for change in changes]
        places = [i for i, known in enumerate(outcomes) if known is None]
        written = self._write([changes[place] for place in places])
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def close(self) -> None:
        """Close all file descriptors; the control can still be used."""
        self._open_files.close()

    def _read_value(self, key: str) -> int | None:
        """Read the value of one VM; ``None`` if the VM vanished.

        :raises WriteRefused: if it has no such file, or a value out of range.
        """
        value = self._open_files.read(key)
        return None if value is None else self._checked_value(value)

    def _checked_value(self, value: int) -> int:
        low, high = self.unit_range()
        if low <= value <= high:
            return value
        raise exception.WriteRefused(
            f'{self._name} is {value}, expected {low}..{high}; the group is '
            f'not changed'
        )

    def _refused_result(
        self, change: allocation.Change
    ) -> control.ApplyResult | None:
        """Return the error result of a value out of range; ``None`` if in
        range.
        """
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
            self._result_of_write(change, next(filter(None, each), 0))
            for change, each in zip(changes, numbers, strict=True)
        ]

    def _requests(self, change: allocation.Change) -> list[privileged.Request]:
        """Return the helper's requests that write a change, in sequence."""
        _, pid, ticks = instance.parse_key(change.knob.incarnation)
        return [(self._name, self.formatted(change.after), pid, ticks)]

    def _result_of_write(
        self, change: allocation.Change, number: int
    ) -> control.ApplyResult:
        """Return the result of a write, by its error number and the value
        read back.
        """
        try:
            kept = self._read_value(change.knob.incarnation)
        except exception.WriteRefused as error:
            return self._failed_result(change, str(error))
        if kept is None:
            return control.ApplyResult(change, gone=True)
        if number:
            return self._failed_result(change, os.strerror(number))
        if kept != change.after:
            return self._failed_result(
                change, f'the kernel set {kept} instead'
            )
        return control.ApplyResult(change)

    def _failed_result(
        self, change: allocation.Change, reason: str
    ) -> control.ApplyResult:
        key = change.knob.incarnation
        self._open_files.forget(key)
        if self._open_files.is_gone(key):
            return control.ApplyResult(change, gone=True)
        return control.ApplyResult(
            change, f'{self._name} of {key} = {change.after}: {reason}'
        )


def has_unified(mounts: Mapping[str, cgroup.Mount], controller: str) -> bool:
    """Check whether cgroup v2 has a controller on this host.

    :raises ControlUnavailable: if the list of controllers cannot be read.
    """
    unified = mounts.get(cgroup.UNIFIED)
    if unified is None:
        return False
    path = pathlib.Path(unified.path) / 'cgroup.controllers'
    try:
        return controller in path.read_text('ascii').split()
    except OSError as error:
        raise exception.ControlUnavailable(
            f'controllers of cgroup v2: the list cannot be read: {error}'
        ) from error


def version_of(
    mounts: Mapping[str, cgroup.Mount],
    v1_controller: str,
    v2_controller: str,
    missing: str,
) -> int:
    """Return the version of control groups that has a controller, 1 or 2.

    A controller belongs to one hierarchy only. If v1 has it, the version is 1,
    also if a v2 tree is mounted.

    :param v1_controller: its name in v1.
    :param v2_controller: its name in v2.
    :param missing: text of the error if neither version has it.
    :raises ControlUnavailable: if neither version has it.
    """
    if v1_controller in mounts:
        return 1
    if has_unified(mounts, v2_controller):
        return 2
    raise exception.ControlUnavailable(missing)


_IDLE_SHOWS = {files.CPU_SHARES: 3, files.CPU_WEIGHT: 0}
"""Values that the files of an idle group show (Linux 5.15 and later)."""


class CpuShares(GroupControl):
    """Steers the CPU shares or weight of each VM's group.

    All threads of a VM share one value. Where v1 has the ``cpu`` controller,
    v1 is used, also if a v2 tree is mounted. The value :data:`allocation.IDLE`
    means ``cpu.idle``. An idle group accepts no shares; when it stops being
    idle, it has the default shares.

    :param proc: where procfs is mounted.
    :param mountinfo_path: file that lists the mounted hierarchies.
    :param writer: as :func:`privileged.write_controls`.
    :param max_open: largest number of file descriptors that stay open.
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
        """Check whether the kernel supports ``cpu.idle`` for a VM."""
        try:
            return self._idle.read(key) is not None
        except exception.WriteRefused:
            return False

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the present values of VMs, by key."""
        self._idle.next_round(len(keys))
        return super().read(keys)

    def close(self) -> None:
        """Close all file descriptors; the control can still be used."""
        super().close()
        self._idle.close()

    def _read_value(self, key: str) -> int | None:
        value = self._open_files.read(key)
        if value == _IDLE_SHOWS[self._name] and self._is_idle(key):
            return allocation.IDLE
        return None if value is None else self._checked_value(value)

    def _is_idle(self, key: str) -> bool:
        return self.can_idle(key) and self._idle.read(key) == 1

    def _refused_result(
        self, change: allocation.Change
    ) -> control.ApplyResult | None:
        if change.after == allocation.IDLE and self.can_idle(
            change.knob.incarnation
        ):
            return None
        return super()._refused_result(change)

    def _requests(self, change: allocation.Change) -> list[privileged.Request]:
        key = change.knob.incarnation
        _, pid, ticks = instance.parse_key(key)
        if change.after == allocation.IDLE:
            return [(files.CPU_IDLE, '1', pid, ticks)]
        wakes: list[privileged.Request] = (
            [(files.CPU_IDLE, '0', pid, ticks)]
            if self._ends_idle(change)
            else []
        )
        return [*wakes, *super()._requests(change)]

    def _ends_idle(self, change: allocation.Change) -> bool:
        if change.before is None:
            return self._is_idle(change.knob.incarnation)
        return change.before == allocation.IDLE


def _cpu_file(mounts: Mapping[str, cgroup.Mount]) -> str:
    """Return the name of the file that steers the CPU on this host."""
    version = version_of(
        mounts,
        files.FILES[files.CPU_SHARES].controller,
        files.CPU_CONTROLLER,
        'no CPU controller is mounted; expected it in a cgroup v1 hierarchy '
        'or in cgroup.controllers of the v2 hierarchy',
    )
    return files.CPU_SHARES if version == 1 else files.CPU_WEIGHT
