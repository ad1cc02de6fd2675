# SPDX-License-Identifier: Apache-2.0

"""Memory of VMs that is spared while others must give some up.

``memory.soft_limit_in_bytes`` (cgroup v1) and ``memory.low`` (v2). Both do
nothing while memory is free, and neither ever stops a VM that takes more:
``memory.high`` and ``memory.max`` are never written.

On v2 the kernel spares a group at most what it spares the group above. So
every group from the VM's own up to the root gets the sum of what is below it.
Where libvirt keeps a VM's processes in a group inside the VM's own, that one
gets all of it.
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
_MOST_LEVELS = 16
_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.ENODEV})


def parsed_bytes(content: bytes) -> int:
    """The bytes that a limit of memory says.

    :raises ValueError: if it says none.
    """
    line = content.partition(b'\n')[0].strip()
    return _UNLIMITED if line == b'max' else int(line)


def byte_text(value: int) -> str:
    """Text that is written for a number of bytes."""
    return 'max' if value >= _UNLIMITED else str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """One group on the way to a VM.

    :ivar path: its directory.
    :ivar number: of its inode; the kernel never gives it to another group.
    :ivar level: seen from the VM, see :func:`files.control_path`.
    """

    path: str
    number: int
    level: int


class MemoryPath:
    """Keeps the way to the VMs of a node open for what they are spared.

    :param shared: record of what groups on the way held, loaded.
    :param proc: where procfs is mounted.
    :param mounts: of control groups.
    :param writer: as :func:`privileged.write_controls`.
    :param lower_empty: as :func:`privileged.lower_empty`.
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
        self._ways: dict[str, tuple[_Group, ...]] = {}
        self._lows: dict[str, int] = {}

    def see(self, lows: Mapping[str, int]) -> None:
        """Take over what VMs are spared now.

        :param lows: bytes by key of an incarnation.
        """
        self._lows.update(lows)

    def record(self, keys: Iterable[str]) -> None:
        """Record what the groups on the way hold, before anything changes.

        :raises StateError: if it cannot be written.
        """
        found: dict[allocation.Knob, int] = {}
        for key in keys:
            for group in self._way(key):
                knob = _knob(group)
                value = self._found_value(group, knob)
                if group.level != files.OWN and value is not None:
                    found[knob] = value
        self._shared.remember(found)

    def settle(self) -> tuple[str, ...]:
        """Write what the groups on the way must hold now.

        :returns: what went wrong.
        """
        if not self._shared.values:
            return ()
        self._forget_the_ended()
        problems: list[str] = []
        own = self._own_lows()
        chosen: dict[int, tuple[str, _Group]] = {}
        for key in self._lows:
            for group in self._way(key):
                if _knob(group) in self._shared.values:
                    chosen[group.number] = (key, group)
        # What is below must be right before it is added up.
        order = sorted(
            chosen.values(), key=lambda item: (item[1].level, item[1].path)
        )
        for key, group in order:
            wanted = self._wanted(group, own)
            if wanted != _low(group.path):
                problems += self._write(key, group, wanted)
        return tuple(problems)

    def release(self) -> tuple[str, ...]:
        """Restore what every recorded group held, and clear the record.

        :returns: what went wrong; that stays recorded.
        """
        if not self._shared.values:
            return ()
        reached = {
            group.number: (key, group)
            for key in self._lows
            for group in self._way(key)
        }
        problems: list[str] = []
        done: list[allocation.Knob] = []
        for knob, value in self._shared.values.items():
            number = instance.parse_key(knob.incarnation)[1]
            told = self._give_back(number, reached.get(number), value)
            problems += told
            if not told:
                done.append(knob)
        self._shared.forget(done)
        try:
            self._shared.flush()
        except exception.StateError as error:
            problems.append(str(error))
        return tuple(problems)

    def _give_back(
        self, number: int, reached: tuple[str, _Group] | None, value: int
    ) -> list[str]:
        if reached is not None:
            return self._write(*reached, value)
        try:
            result = self._lower_empty(number, byte_text(value))
        except exception.ControlUnavailable as error:
            return [str(error)]
        if result and result not in _GONE:
            what = f'{_FILE} of control group number {number} = {value}'
            return [f'{what}: {os.strerror(result)}']
        return []

    def _found_value(self, group: _Group, knob: allocation.Knob) -> int | None:
        """Bytes that a group is to be restored to, if it is there."""
        low = _low(group.path)
        if low is not None and self._shared.is_unknown(knob.incarnation):
            # The record was lost, so what is there may be our own.
            return files.FILES[_FILE].default
        return low

    def _own_lows(self) -> Mapping[str, int]:
        """Bytes that VMs are spared, by path of their own groups."""
        return {
            group.path: low
            for key, low in self._lows.items()
            for group in self._way(key)
            if group.level == files.OWN
        }

    def _wanted(self, group: _Group, own: Mapping[str, int]) -> int:
        """Value of a group that spares all groups below it."""
        if group.level == files.INNER:
            return _UNLIMITED
        below = sum(
            own[child] if child in own else _low(child) or 0
            for child in _children(group.path)
        )
        found = self._shared.values[_knob(group)]
        return min(_UNLIMITED, max(found, below))

    def _write(self, key: str, group: _Group, value: int) -> list[str]:
        _, pid, ticks = instance.parse_key(key)
        request = (_FILE, byte_text(value), pid, ticks, group.level)
        try:
            (result,) = self._writer([request])
        except exception.ControlUnavailable as error:
            return [str(error)]
        if result in _GONE or not result:
            return []
        return [f'{group.path}/{_FILE} = {value}: {os.strerror(result)}']

    def _way(self, key: str) -> tuple[_Group, ...]:
        """Find the groups on the way to a VM; nothing if it is gone."""
        if key not in self._ways:
            self._ways[key] = self._found_way(key)
        return self._ways[key]

    def _found_way(self, key: str) -> tuple[_Group, ...]:
        found: list[_Group] = []
        for level in range(files.INNER, _MOST_LEVELS):
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
            found.append(_Group(str(directory), number, level))
        return tuple(found)

    def _forget_the_ended(self) -> None:
        for key in list(self._lows):
            try:
                running = files.is_running(self._proc, key)
            except OSError:
                continue
            if not running:
                self._lows.pop(key)
                self._ways.pop(key, None)


def _knob(group: _Group) -> allocation.Knob:
    """The name of a group in the record."""
    return allocation.Knob(
        f'group/{group.number}/0', resources.ResourceControl.MEMORY
    )


def _low(path: str) -> int | None:
    try:
        return parsed_bytes(pathlib.Path(path, _FILE).read_bytes())
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
    """Steers how much memory of each VM is spared.

    On v2 a group is spared only as much as all groups above it. So groups
    above get the sum of the values below them. Their earlier values are
    recorded like those of VMs.

    :param shared: record of the values of groups that VMs share, loaded; only
        v2 needs one.
    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :param lower_empty: as :func:`privileged.lower_empty`.
    :param max_open: at most so many descriptors are kept between reads.
    :raises ControlUnavailable: if this host has no memory controller.
    """

    kind = resources.ResourceControl.MEMORY

    def __init__(
        self,
        shared: found_values.FoundValues | None = None,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: group_control.Writer = privileged.write_controls,
        lower_empty: Callable[[int, str], int] = privileged.lower_empty,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_bytes())
        name = _name_of_control(mounts)
        super().__init__(proc, mounts, name, writer, max_open)
        self._path: MemoryPath | None = None
        if name == files.MEMORY_LOW and shared is not None:
            self._path = MemoryPath(shared, proc, mounts, writer, lower_empty)

    def parsed(self, content: bytes) -> int:
        """The bytes that a file says."""
        return parsed_bytes(content)

    def formatted(self, value: int) -> str:
        """Text that is written for a number of bytes."""
        return byte_text(value) if self._path else str(value)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what is spared of each VM now."""
        values = super().read(keys)
        if self._path is not None:
            self._path.see(values)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.ApplyResult, ...]:
        """Write each change, after what the way to it held is recorded."""
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
        self._path.see(
            {
                item.change.knob.incarnation: item.change.after
                for item in outcomes
                if item.written
            }
        )
        return outcomes

    def settle(self) -> tuple[str, ...]:
        """Write to the groups above what the VMs below them are spared."""
        return () if self._path is None else self._path.settle()

    def release(self) -> tuple[str, ...]:
        """Restore what the groups above held before."""
        return () if self._path is None else self._path.release()


def _name_of_control(mounts: Mapping[str, cgroup.Mount]) -> str:
    """The name of the file that steers memory on this host."""
    version = group_control.version_of(
        mounts,
        MEMORY_CONTROLLER,
        MEMORY_CONTROLLER,
        'no memory controller is mounted; expected it in a cgroup v1 '
        'hierarchy or in cgroup.controllers of the v2 hierarchy',
    )
    return files.MEMORY_SOFT_LIMIT if version == 1 else files.MEMORY_LOW
