# SPDX-License-Identifier: Apache-2.0

"""Memory of VMs that is spared while others must give some up.

``memory.soft_limit_in_bytes`` (cgroup v1) and ``memory.low`` (v2). Both do
nothing while memory is free, and neither ever stops a VM that takes more:
``memory.high`` and ``memory.max`` are never written.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib

from nova_fairness import exception
from nova_fairness.apply import control
from nova_fairness.apply import found as found_values
from nova_fairness.apply import memory_path
from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_groups
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import resources

MEMORY_CONTROLLER = 'memory'
UNLIMITED = files.FILES[files.MEMORY_LOW].highest
"""What the kernel makes of ``max``."""


class MemoryProtection(group_control.GroupControl):
    """Steers how much memory of each VM is spared.

    On v2 a group is spared only what all groups above it are, so those get
    the sum of what is below them; what they held before is recorded like the
    values of VMs.

    :param shared: record of what groups held that VMs share, loaded; only
        v2 needs one.
    :param proc: where procfs is mounted.
    :param mountinfo_path: says where the hierarchies are mounted.
    :param writer: as :func:`privileged.write_controls`.
    :param lower_empty: as :func:`privileged_groups.lower_empty`.
    :param max_open: at most so many descriptors are kept between reads.
    :raises ControlUnavailable: if this host has no memory controller.
    """

    kind = resources.Control.MEMORY

    def __init__(
        self,
        shared: found_values.FoundValues | None = None,
        proc: str = '/proc',
        mountinfo_path: str = '/proc/self/mountinfo',
        writer: group_control.Writer = privileged.write_controls,
        lower_empty: Callable[[int, str], int] = privileged_groups.lower_empty,
        max_open: int = 4096,
    ) -> None:
        mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_text('utf-8'))
        name = _name_of_control(mounts)
        super().__init__(proc, mounts, name, writer, max_open)
        self._path: memory_path.MemoryPath | None = None
        if name == files.MEMORY_LOW and shared is not None:
            self._path = memory_path.MemoryPath(
                shared, proc, mounts, writer, lower_empty
            )

    def parsed(self, content: bytes) -> int:
        """The bytes that a file says."""
        return memory_path.parsed(content)

    def formatted(self, value: int) -> str:
        """Text that is written for a number of bytes."""
        return memory_path.formatted(value) if self._path else str(value)

    def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Read what is spared of each VM now."""
        values = super().read(keys)
        if self._path is not None:
            self._path.see(values)
        return values

    def write(
        self, changes: Sequence[allocation.Change]
    ) -> tuple[control.Outcome, ...]:
        """Write each change, after what the way to it held is recorded."""
        if self._path is None or not changes:
            return super().write(changes)
        keys = [change.knob.incarnation for change in changes]
        try:
            self._path.record(keys)
        except exception.StateError as error:
            return tuple(
                control.Outcome(change, str(error)) for change in changes
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
