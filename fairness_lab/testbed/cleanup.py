# SPDX-License-Identifier: Apache-2.0

"""Runs of the laboratory: where each keeps its files, and what dead ones left.

A run that was killed leaves processes, control groups and files behind; its
namespaces, with the mounts and interfaces in them, end with its processes.
Whether a run is dead is told by the process that owns it.
"""

from collections.abc import Iterator
import json
import pathlib
import secrets
import shutil

from fairness_lab.testbed.nodes import disk
from fairness_lab.testbed.nodes import groups
from fairness_lab.testbed.nodes import processes
from nova_fairness import exception

STATE = pathlib.Path('/var/lib/nova-fairness-lab')
"""Where runs keep the files of their nodes while they last."""

_OWNER = 'owner.json'


def begin(pid: int, state: pathlib.Path = STATE) -> pathlib.Path:
    """Start a run: make its directory, whose name is the run's identifier.

    :param pid: the process that owns the run.
    :param state: where the runs are.
    :raises LabEnvironmentError: if the directory cannot be made.
    """
    owner = processes.identify(pid)
    if owner is None:
        raise exception.LabError(f'process {pid} cannot own a run: it is gone')
    name = f'r{secrets.token_hex(4)}'
    text = json.dumps(
        {
            'pid': owner.pid,
            'start_ticks': owner.start_ticks,
            'boot_id': processes.boot_id(),
        }
    )
    try:
        new = state / f'new-{name}'
        new.mkdir(parents=True)
        (new / _OWNER).write_text(text)
        return new.rename(state / name)
    except OSError as error:
        raise exception.LabEnvironmentError(
            f'{state} cannot be written (the laboratory needs root): {error}'
        ) from None


def finish(run: pathlib.Path) -> None:
    """End a run: nothing of it is left.

    :param run: what :func:`begin` returned.
    :raises LabError: if something does not go away.
    """
    groups.clear(groups.NodeGroups(run.name, '').relative)
    disk.remove(run)
    shutil.rmtree(run, ignore_errors=True)


def remove_dead_runs(state: pathlib.Path = STATE) -> list[str]:
    """Remove what runs left whose owner is dead.

    :returns: the identifiers of those runs.
    :raises LabError: if something does not go away.
    """
    dead = sorted(_dead(state))
    for name in dead:
        finish(state / name)
    return dead


def other_runs(run: pathlib.Path) -> list[str]:
    """Give the other runs that go on; each takes CPU time from the other.

    :param run: what :func:`begin` returned.
    """
    return sorted(
        path.name
        for path in run.parent.glob('r*')
        if path.name != run.name and _is_owned(path)
    )


def _dead(state: pathlib.Path) -> Iterator[str]:
    known = {path.name for path in state.glob('*') if path.is_dir()}
    # groups without a directory are left by a removal that was cut off
    yield from groups.runs() - known
    for name in known:
        if not name.startswith('new-') and not _is_owned(state / name):
            yield name


def _is_owned(run: pathlib.Path) -> bool:
    try:
        owner = json.loads((run / _OWNER).read_text())
        identity = processes.Identity(owner['pid'], owner['start_ticks'])
        same_boot = owner['boot_id'] == processes.boot_id()
    except (OSError, ValueError, KeyError):
        return False
    return same_boot and processes.is_alive(identity)
