# SPDX-License-Identifier: Apache-2.0

"""The control group under which all VMs of a host live."""

from collections.abc import Iterator
import pathlib

from nova_fairness.collect import kernel_text
from nova_fairness.model import cgroup

# Below the root: without and with systemd.
_MACHINE = ('machine', 'machine.slice')
_CPUS = (
    'cpuset.cpus.effective',
    'cpuset.effective_cpus',
    'cpuset.cpus',
)
_MEMORY = ('memory.max', 'memory.limit_in_bytes')


def cpus(proc: pathlib.Path) -> tuple[int, ...]:
    """The CPUs that VMs may use.

    :param proc: where the process file system is mounted.
    :returns: those of the machine partition if it exists, else of this
        process's own group; ascending, empty if no cpuset tells.
    """
    places = [*_machine(proc, 'cpuset'), *_own(proc, 'cpuset')]
    for text in _texts(places, _CPUS):
        try:
            found = kernel_text.cpu_list(text)
        except ValueError:
            continue
        if found:
            return found
    return ()


def memory_limit_bytes(proc: pathlib.Path) -> int | None:
    """The smallest memory limit above the VMs.

    The group of this process is no such place: its limit is meant for the
    agent alone.

    :param proc: where the process file system is mounted.
    :returns: ``None`` if there is no limit.
    """
    places = [*_machine(proc, 'memory'), *_roots(proc, 'memory')]
    limits = [
        int(text)
        for text in _texts(places, _MEMORY)
        if text.strip().isdecimal()
    ]
    return min(limits, default=None)


def _roots(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    """Yield what shows a controller's topmost group, v2 last."""
    mounts = cgroup.mounts(_text(proc / 'self' / 'mountinfo'))
    for name in (controller, cgroup.UNIFIED):
        if name in mounts:
            yield pathlib.Path(mounts[name].path)


def _machine(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    for root in _roots(proc, controller):
        for name in _MACHINE:
            yield root / name


def _own(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    mounts = cgroup.mounts(_text(proc / 'self' / 'mountinfo'))
    groups = cgroup.groups_of_process(_text(proc / 'self' / 'cgroup'))
    for name in (controller, cgroup.UNIFIED):
        if name not in mounts or name not in groups:
            continue
        try:
            yield pathlib.Path(cgroup.directory(mounts[name], groups[name]))
        except ValueError:
            continue


def _texts(
    places: list[pathlib.Path], names: tuple[str, ...]
) -> Iterator[str]:
    for place in places:
        for name in names:
            text = _text(place / name)
            if text.strip():
                yield text


def _text(path: pathlib.Path) -> str:
    """A file's text; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ''
