# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
