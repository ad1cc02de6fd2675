# SPDX-License-Identifier: Apache-2.0

"""Protects memory of VMs from reclaim while other VMs must release some.

It uses ``memory.soft_limit_in_bytes`` (cgroup v1) and ``memory.low`` (v2).
Both have no effect while memory is free, and neither stops a VM that uses
more. ``memory.high`` and ``memory.max`` are never written. On v2 the kernel
protects a group at most as much as the group above it. So every group from the
VM's own up to the root gets the sum of the groups below. Where libvirt creates
a group inside the VM's own, that one gets everything.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import errno
import os
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources

_FILE = files.MEMORY_LOW
_UNLIMITED = files.FILES[_FILE].highest
_MAX_LEVELS = 16
_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.ENODEV})


def parse_bytes(content: bytes) -> int:
    """Return the number of bytes in the content of a memory limit file.

    :raises ValueError: if the content is no such number.
    """
    line = content.partition(b'\n')[0].strip()
    return _UNLIMITED if line == b'max' else int(line)


def format_bytes(value: int) -> str:
    """Return the text that is written for a number of bytes."""
    return 'max' if value >= _UNLIMITED else str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class _PathGroup:
    """One group between the root and a VM.

    :ivar path: its directory.
    :ivar number: of its inode; the kernel never reuses it.
    :ivar level: as seen from the VM, see :func:`files.control_path`.
    """

    path: str
    number: int
    level: int


class AncestorGroups:
    """Sets the memory protection of the groups above the VMs.

    :param shared: record of the values that these groups had before, loaded.
    :param proc: where procfs is mounted.
    :param mounts: of control groups.
    :param writer: as :func:`privileged.write_controls`.
    :param lower_empty: as :func:`privileged.protect_empty_group`.
    """

    def __init__(
        self,
        shared: found_values.FoundValues,
        proc: str,
        mounts: Mapping[str, cgroup.Mount],
        writer: group_control.Writer,
        lower_empty: Callable[[int, str], int],
    ) -> None:
        self._shared = shared
        self._proc = proc
        self._mounts = mounts
        self._writer = writer
        self._lower_empty = lower_empty
        self._paths_by_vm: dict[str, tuple[_PathGroup, ...]] = {}
        self._protected_bytes: dict[str, int] = {}

    def set_protection(self, lows: Mapping[str, int]) -> None:
        """Set the bytes that are protected of VMs now.

        :param lows: bytes by key of an incarnation.
        """
        self._protected_bytes.update(lows)

    def record(self, keys: Iterable[str]) -> None:
        """Record the present values of the groups above VMs, before a change.

        :raises StateError: if the record cannot be written.
        """
        found: dict[allocation.Knob, int] = {}
        for key in keys:
            for group in self._path_to(key):
                knob = _knob(group)
                value = self._found_value(group, knob)
                if group.level != files.OWN and value is not None:
                    found[knob] = value
        self._shared.remember(found)

    def settle(self) -> tuple[str, ...]:
        """Write the sums of the protected bytes to the groups above the VMs.

        :returns: error messages.
        """
        if not self._shared.values:
            return ()
        self._forget_ended_vms()
        problems: list[str] = []
        own = self._protection_by_group()
        chosen: dict[int, tuple[str, _PathGroup]] = {}
        for key in self._protected_bytes:
            for group in self._path_to(key):
                if _knob(group) in self._shared.values:
                    chosen[group.number] = (key, group)
        # What is below must be right before it is added up.
        order = sorted(
            chosen.values(), key=lambda item: (item[1].level, item[1].path)
        )
        for key, group in order:
            wanted = self._wanted_low(group, own)
            if wanted != _read_low(group.path):
                problems += self._write(key, group, wanted)
        return tuple(problems)

    def release(self) -> tuple[str, ...]:
        """Restore the found value of every recorded group, and delete its
        record.

        :returns: error messages; groups with an error stay recorded.
        """
        if not self._shared.values:
            return ()
        reached = {
            group.number: (key, group)
            for key in self._protected_bytes
            for group in self._path_to(key)
        }
        problems: list[str] = []
        done: list[allocation.Knob] = []
        for knob, value in self._shared.values.items():
            number = instance.parse_key(knob.incarnation)[1]
            told = self._restore_group(number, reached.get(number), value)
            problems += told
            if not told:
                done.append(knob)
        self._shared.forget(done)
        try:
            self._shared.flush()
        except exception.StateError as error:
            problems.append(str(error))
        return tuple(problems)

    def _restore_group(
        self, number: int, reached: tuple[str, _PathGroup] | None, value: int
    ) -> list[str]:
        if reached is not None:
            return self._write(*reached, value)
        try:
            result = self._lower_empty(number, format_bytes(value))
        except exception.ControlUnavailable as error:
            return [str(error)]
        if result and result not in _GONE:
            what = f'{_FILE} of control group number {number} = {value}'
            return [f'{what}: {os.strerror(result)}']
        return []

    def _found_value(
        self, group: _PathGroup, knob: allocation.Knob
    ) -> int | None:
        """Return the value to which a group is to be restored; ``None``
        if it vanished.
        """
        low = _read_low(group.path)
        if low is not None and self._shared.is_unknown(knob.incarnation):
            # The record was lost, so what is there may be our own.
            return files.FILES[_FILE].default
        return low

    def _protection_by_group(self) -> Mapping[str, int]:
        """Return the protected bytes of VMs, by path of their own groups."""
        return {
            group.path: low
            for key, low in self._protected_bytes.items()
            for group in self._path_to(key)
            if group.level == files.OWN
        }

    def _wanted_low(self, group: _PathGroup, own: Mapping[str, int]) -> int:
        """Return the value of a group that protects all groups below it."""
        if group.level == files.INNER:
            return _UNLIMITED
        below = sum(
            own[child] if child in own else _read_low(child) or 0
            for child in _children(group.path)
        )
        found = self._shared.values[_knob(group)]
        return min(_UNLIMITED, max(found, below))

    def _write(self, key: str, group: _PathGroup, value: int) -> list[str]:
        _, pid, ticks = instance.parse_key(key)
        request = (_FILE, format_bytes(value), pid, ticks, group.level)
        try:
            (result,) = self._writer([request])
        except exception.ControlUnavailable as error:
            return [str(error)]
        if result in _GONE or not result:
            return []
        return [f'{group.path}/{_FILE} = {value}: {os.strerror(result)}']

    def _path_to(self, key: str) -> tuple[_PathGroup, ...]:
        """Return the groups from a VM up to the root; empty if the VM
        ended.
        """
        if key not in self._paths_by_vm:
            self._paths_by_vm[key] = self._find_path(key)
        return self._paths_by_vm[key]

    def _find_path(self, key: str) -> tuple[_PathGroup, ...]:
        found: list[_PathGroup] = []
        for level in range(files.INNER, _MAX_LEVELS):
            _, pid, _ = instance.parse_key(key)
            try:
                path = files.control_path(
                    self._proc, self._mounts, pid, _FILE, level
                )
                directory = pathlib.Path(path).parent
                number = directory.stat().st_ino
                # The root has no limits.
                pathlib.Path(path).stat()
            except (OSError, exception.WriteRefused):
                if level >= files.OWN:
                    break
                continue
            found.append(_PathGroup(str(directory), number, level))
        return tuple(found)

    def _forget_ended_vms(self) -> None:
        for key in list(self._protected_bytes):
            try:
                running = files.is_running(self._proc, key)
            except OSError:
                continue
            if not running:
                self._protected_bytes.pop(key)
                self._paths_by_vm.pop(key, None)


def _knob(group: _PathGroup) -> allocation.Knob:
    """Return the identifier of a group in the record."""
    return allocation.Knob(
        f'group/{group.number}/0', resources.ResourceControl.MEMORY
    )


def _read_low(path: str) -> int | None:
    try:
        return parse_bytes(pathlib.Path(path, _FILE).read_bytes())
    except (OSError, ValueError):
        return None


def _children(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []


MEMORY_CONTROLLER = 'memory'
UNLIMITED = files.FILES[files.MEMORY_LOW].highest
"""The kernel's value of ``max``."""


class MemoryProtection(group_control.GroupControl):
    """Steers how much memory of each VM is protected from reclaim.

    On v2 a group is protected only as much as all groups above it. So the
    groups above get the sum of the values below. Their earlier values are
    recorded like those of VMs.

    :param shared: record of the values of groups that VMs share, loaded; only
        v2 needs one.
    :param proc: where procfs is mounted.
    :param mountinfo_path: file that lists the mounted hierarchies.
    :param writer: as :func:`privileged.write_controls`.
    :param lower_empty: as :func:`privileged.protect_empty_group`.
    :param max_open: largest number of file descriptors that stay open.
    :raises ControlUnavailable: if this host has no memory controller.
    """

    kind = resources.ResourceControl.MEMORY

    def __init__(
        self,
        shared: found_values.FoundValues | None = None,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: group_control.Writer = privileged.write_controls,
        lower_empty: Callable[
            [int, str], int
        ] = privileged.protect_empty_group,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_bytes())
        name = _memory_file(mounts)
        super().__init__(proc, mounts, name, writer, max_open)
        self._path: AncestorGroups | None = None
        if name == files.MEMORY_LOW and shared is not None:
            self._path = AncestorGroups(
                shared, proc, mounts, writer, lower_empty
            )

    def parsed(self, content: bytes) -> int:
        """Return the number of bytes in a file's content."""
        return parse_bytes(content)

    def formatted(self, value: int) -> str:
        """Return the text that is written for a number of bytes."""
        return format_bytes(value) if self._path else str(value)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read the protected bytes of each VM."""
        values = super().read(keys)
        if self._path is not None:
            self._path.set_protection(values)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write each change, after the values of the groups above are
        recorded.
        """
        if self._path is None or not changes:
            return super().write(changes)
        keys = [change.knob.incarnation for change in changes]
        try:
            self._path.record(keys)
        except exception.StateError as error:
            return tuple(
                control.ApplyResult(change, str(error)) for change in changes
            )
        outcomes = super().write(changes)
        self._path.set_protection(
            {
                item.change.knob.incarnation: item.change.after
                for item in outcomes
                if item.written
            }
        )
        return outcomes

    def settle(self) -> tuple[str, ...]:
        """Write the sums of the VMs' protected bytes to the groups above."""
        return () if self._path is None else self._path.settle()

    def release(self) -> tuple[str, ...]:
        """Restore the values that the groups above had before."""
        return () if self._path is None else self._path.release()


def _memory_file(mounts: Mapping[str, cgroup.Mount]) -> str:
    """Return the name of the file that steers memory on this host."""
    version = group_control.version_of(
        mounts,
        MEMORY_CONTROLLER,
        MEMORY_CONTROLLER,
        'no memory controller is mounted; expected it in a cgroup v1 '
        'hierarchy or in cgroup.controllers of the v2 hierarchy',
    )
    return files.MEMORY_SOFT_LIMIT if version == 1 else files.MEMORY_LOW
