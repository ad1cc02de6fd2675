# SPDX-License-Identifier: Apache-2.0

"""Control groups of the laboratory's nodes, cgroup v1, hybrid and v2.

Everything lies below one group: ``nova-fairness-lab/RUN/NODE``. The processes
of a node stand in the child ``system``, its VMs in the child ``machine``,
which libvirt makes; a v2 group with children cannot hold processes itself.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import pathlib
import time

from fairness_lab.testbed.nodes import processes
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
    """Hierarchies of this machine that a node needs.

    :raises LabEnvironmentError: if control groups are not mounted.
    """
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_bytes())
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


TOP = 'nova-fairness-lab'
_TOP = pathlib.PurePosixPath(TOP)
SYSTEM = 'system'

WEIGHT = 10.0
"""CPU weight of all runs together, in weights of any other program's group.

Other programs there would make a node smaller than the scenario says. But the
programs that load, observe and end the guests must not starve where nodes have
all CPUs and use them.
"""

_NEUTRAL = {'cpu.shares': 1024, 'cpu.weight': 100}
"""Default values of the kernel for a group of v1 and of v2."""

_SPARED = 'memory.low'
"""A group is spared at most as much as those above it (cgroup v2). Groups that
a node does not see are spared in full, or its agent could not spare any VM."""

_V2_CONTROLLERS = '+cpu +cpuset +memory +io +pids'


class NodeGroups:
    """The control groups of one node.

    :param run: identifier of the run.
    :param node: name of the node.
    """

    def __init__(self, run: str, node: str) -> None:
        self.hierarchies = mounted()
        self.relative = pathlib.PurePosixPath(TOP, run, node)

    def directories(self) -> list[pathlib.Path]:
        """Node's own group in every hierarchy."""
        return [item.path / self.relative for item in self.hierarchies]

    def make(self) -> None:
        """Make the node's groups with the CPUs of their parents.

        :raises LabEnvironmentError: if that is not allowed.
        """
        try:
            for item in self.hierarchies:
                is_first = not (item.path / TOP).is_dir()
                try:
                    _make_path(item, self.relative / SYSTEM)
                except FileNotFoundError:
                    # the last other run has just ended and removed the top
                    is_first = True
                    _make_path(item, self.relative / SYSTEM)
                if is_first:
                    _write_cpu_weight(item, _TOP, WEIGHT)
                for group in (self.relative, *self.relative.parents[:-1]):
                    _write(item.path / group / _SPARED, 'max')
        except OSError as error:
            raise exception.LabEnvironmentError(
                f'control groups cannot be made (root is needed): {error}'
            ) from None

    def set_cpu_weight(self, weight: float) -> None:
        """Node another CPU weight than the other nodes of its run.

        :param weight: in weights of each other node, > 0.
        :raises LabError: if the kernel refuses.
        """
        for item in self.hierarchies:
            _write_cpu_weight(item, self.relative, weight)

    def delegate(self) -> None:
        """Let VMs' groups be made beside ``system`` (cgroup v2 only).

        :raises LabError: if the kernel refuses.
        """
        for item in self.hierarchies:
            if not item.controllers:
                _enable(item.path / self.relative)

    def set_cpus(self, cpus: Sequence[int]) -> None:
        """Restrict the node, its VMs among it, to some CPUs.

        A group cannot have CPUs that its parent lacks, nor lose some that a
        child has, so all are first widened from the top, then narrowed from
        the bottom.

        :param cpus: numbers of CPUs, not empty.
        :raises LabError: if the kernel refuses.
        """
        wanted = ','.join(map(str, sorted(cpus)))
        for item in self.hierarchies:
            if not item.steers_cpus:
                continue
            top = item.path / self.relative
            if not item.controllers:
                _write(top / 'cpuset.cpus', wanted)
                continue
            groups = [top, *_groups_below(top)]
            every = _text(item.path / 'cpuset.cpus')
            for group in groups:
                _write(group / 'cpuset.cpus', every)
            for group in reversed(groups):
                _write(group / 'cpuset.cpus', wanted)

    def pids(self) -> list[int]:
        """Processes of the node, ascending."""
        return processes_below(self.directories())

    def holds(self, pid: int) -> bool:
        """Whether a process belongs to the node."""
        return is_below_group(pid, self.relative)

    def join_files(self) -> list[pathlib.Path]:
        """Files into which a process writes its number to join."""
        return [path / SYSTEM / 'cgroup.procs' for path in self.directories()]

    def remove(self) -> None:
        """End the node's processes and remove its groups.

        :raises LabError: if something does not go away.
        """
        remove_group(self.relative)


def set_cpu_weight_of_runs(weight: float) -> None:
    """All runs of this machine together another CPU weight.

    :param weight: in weights of any other program's group, > 0.
    :raises LabError: if the kernel refuses.
    """
    for item in mounted():
        _write_cpu_weight(item, _TOP, weight)


def _write_cpu_weight(
    item: Hierarchy, group: pathlib.PurePosixPath, weight: float
) -> None:
    for name, neutral in _NEUTRAL.items():
        _write(item.path / group / name, str(round(neutral * weight)))


def runs_with_groups() -> set[str]:
    """Runs that have control groups."""
    return {
        path.name
        for item in mounted()
        if (item.path / TOP).is_dir()
        for path in (item.path / TOP).iterdir()
        if path.is_dir()
    }


def remove_group(relative: pathlib.PurePosixPath) -> None:
    """End every process below a group and remove it everywhere.

    :param relative: below every hierarchy's mount point.
    :raises LabError: if something does not go away.
    """
    found = mounted()
    tops = [item.path / relative for item in found]
    processes.end_all(
        lambda: processes_below(tops),
        lambda pid: is_below_group(pid, relative),
    )
    for top in tops:
        _remove(top)
    for item in found:
        # other runs may be in it
        with contextlib.suppress(OSError):
            (item.path / TOP).rmdir()


def processes_below(tops: Sequence[pathlib.Path]) -> list[int]:
    """Processes of some groups and all below them, ascending."""
    found: set[int] = set()
    for top in tops:
        if not top.is_dir():
            continue
        for group in [top, *_groups_below(top)]:
            found.update(map(int, _text(group / 'cgroup.procs').split()))
    return sorted(found)


def is_below_group(pid: int, relative: pathlib.PurePosixPath) -> bool:
    """Whether a process stands in a group or below it."""
    try:
        text = pathlib.Path(f'/proc/{pid}/cgroup').read_text()
    except OSError:
        return False
    prefix = f'/{relative}/'
    groups = cgroup.groups_of_process(text).values()
    return any((group + '/').startswith(prefix) for group in groups)


def _make_path(item: Hierarchy, relative: pathlib.PurePosixPath) -> None:
    path = item.path
    for part in relative.parts:
        if not item.controllers and part != SYSTEM:
            _enable(path)
        parent, path = path, path / part
        path.mkdir(exist_ok=True)
        if 'cpuset' in item.controllers and not _text(path / 'cpuset.cpus'):
            for name in ('cpuset.mems', 'cpuset.cpus'):
                _write(path / name, _text(parent / name))


def _enable(group: pathlib.Path) -> None:
    present = _text(group / 'cgroup.controllers').split()
    wanted = [name for name in _V2_CONTROLLERS.split() if name[1:] in present]
    if wanted:
        _write(group / 'cgroup.subtree_control', ' '.join(wanted))


def _groups_below(top: pathlib.Path) -> list[pathlib.Path]:
    """All groups below one, parents before children."""
    return sorted(path for path in _walk(top) if path != top)


def _walk(top: pathlib.Path) -> Iterator[pathlib.Path]:
    try:
        children = [path for path in top.iterdir() if path.is_dir()]
    except OSError:
        return
    yield top
    for child in children:
        yield from _walk(child)


def _remove(top: pathlib.Path) -> None:
    """Remove a group and what is below; ended processes leave it late."""
    deadline = time.monotonic() + 10
    for path in [*reversed(_groups_below(top)), top]:
        while path.is_dir():
            try:
                path.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise exception.LabError(
                        f'control group {path} stays: {error}'
                    ) from None
                time.sleep(0.02)


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text().strip()
    except (FileNotFoundError, OSError):
        return ''


def _write(path: pathlib.Path, value: str) -> None:
    """Write a value, unless the group or the file is not there."""
    try:
        with path.open('r+') as stream:
            stream.write(value)
    except FileNotFoundError:
        return
    except OSError as error:
        raise exception.LabError(
            f'{path} does not accept {value!r}: {error}'
        ) from None
