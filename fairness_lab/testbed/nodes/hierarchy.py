# SPDX-License-Identifier: Apache-2.0

"""The hierarchies of control groups that this machine has mounted."""

import dataclasses
import pathlib

from nova_fairness import exception
from nova_fairness.model import cgroup

_CONTROLLERS = (
    'cpu',
    'cpuacct',
    'cpuset',
    'memory',
    'devices',
    'freezer',
    'blkio',
    'pids',
    cgroup.UNIFIED,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy.

    :ivar path: where it is mounted.
    :ivar controllers: of v1; empty for v2.
    """

    path: pathlib.Path
    controllers: tuple[str, ...]

    @property
    def steers_cpus(self) -> bool:
        """Whether CPU sets are kept here."""
        if self.controllers:
            return 'cpuset' in self.controllers
        controllers = (self.path / 'cgroup.controllers').read_text()
        return 'cpuset' in controllers.split()


def mounted() -> tuple[Hierarchy, ...]:
    """Give the hierarchies of this machine that a node needs.

    :raises LabEnvironmentError: if control groups are not mounted.
    """
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    by_path: dict[pathlib.Path, list[str]] = {}
    for name in _CONTROLLERS:
        if name in mounts:
            path = pathlib.Path(mounts[name].path)
            by_path.setdefault(path, []).append(name)
    if not by_path:
        raise exception.LabEnvironmentError(
            'no control groups are mounted below /sys/fs/cgroup'
        )
    return tuple(
        Hierarchy(path, tuple(name for name in names if name))
        for path, names in by_path.items()
    )
