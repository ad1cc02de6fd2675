# SPDX-License-Identifier: Apache-2.0

"""JSON of ``sinfo`` and ``squeue``, as Slurm 22.05 writes it.

Slurm names the form of what it writes. Another form is refused: fields of the
same name have other values there (Slurm, OpenAPI plugin release notes).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import json
import re
from typing import Any

from nova_fairness import exception
from nova_fairness.model import partition

FORM = 'openapi/v0.0.38'
"""The only form that is read: that of Slurm 22.05."""

Json = Mapping[str, Any]

_UP = frozenset({'idle', 'mixed', 'allocated'})
_NOT_ANSWERING = frozenset({'NOT_RESPONDING', 'POWERED_DOWN', 'POWERING_DOWN'})
_CLOSED = frozenset({'DRAIN', 'FAIL', 'MAINTENANCE', 'RESERVED'})

_ENDED = frozenset(
    {
        'BOOT_FAIL',
        'CANCELLED',
        'COMPLETED',
        'DEADLINE',
        'FAILED',
        'NODE_FAIL',
        'OUT_OF_MEMORY',
        'PREEMPTED',
        'REVOKED',
        'TIMEOUT',
    }
)
_ROOM_HELPS = frozenset(
    {'Resources', 'Priority', 'ReqNodeNotAvail', 'NodeDown'}
)
"""Reasons of waiting that end when there are more hosts. Others are limits,
dependencies, times of begin and holds, and ``None``: not looked at yet."""

SAVED_S = 10.0
"""After which slurmctld knows also after a crash that a node was closed, and
that a job is over. It writes its state down every 5 s when it is busy (Slurm
22.05, SAVE_MAX_WAIT); before, a node is open again when slurmctld comes back,
and a job that has ended runs there for minutes, as far as Slurm knows."""

_UNSAVED = 'what Slurm may not have saved'
_UNKNOWN = 'unknown'
"""Name of what a node says it is busy with while no job is listed there."""


def seen(nodes: str, jobs: str, now: float) -> partition.Seen:
    """What Slurm says of its nodes and jobs.

    :param nodes: written by ``sinfo --json``.
    :param jobs: written by ``squeue --json``, after it.
    :param now: when ``nodes`` were written, seconds of the epoch.
    :raises BatchUnreadable: if one is of another form, or lacks something.
    """
    listed = _listed('sinfo', nodes, 'nodes')
    queue = _listed('squeue', jobs, 'jobs')
    try:
        work, over_at = _work(queue), _over_at(queue)
        largest = max((node['cpus'] for node in listed), default=1)
        return partition.Seen(
            {
                node['name']: _place(
                    node,
                    work.get(node['name'], []),
                    over_at.get(node['name'], 0.0),
                    now,
                )
                for node in listed
            },
            tuple(_wants(queue, largest)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise exception.BatchUnreadable(
            f'Slurm wrote JSON that says it is {FORM} and is not:'
            f' {type(error).__name__}: {error}'
        ) from error


def _listed(command: str, text: str, key: str) -> list[Json]:
    try:
        written = json.loads(text)
        form = written['meta']['plugin']['type']
    except (ValueError, KeyError, TypeError) as error:
        raise exception.BatchUnreadable(
            f'{command} --json wrote no JSON that names its form:'
            f' {text[:100]!r}'
        ) from error
    if form != FORM:
        raise exception.BatchUnreadable(
            f'{command} --json wrote the form {form}, expected {FORM} (Slurm'
            ' 22.05)'
        )
    if written.get('errors') or not isinstance(written.get(key), list):
        raise exception.BatchUnreadable(
            f'{command} --json has no list {key}, and errors'
            f' {written.get("errors")!r}'
        )
    found: list[Json] = written[key]
    return found


def _place(
    node: Json, work: list[partition.Work], over_at: float, now: float
) -> partition.Place:
    """One node.

    :param over_at: when the last of its jobs that are over ended.
    """
    flags = set(node['state_flags'])
    is_up = node['state'] in _UP and not flags & _NOT_ANSWERING
    busy = node['alloc_cpus'] or 'COMPLETING' in flags
    if busy and not work:
        work = [partition.Work(_UNKNOWN, float(node['alloc_cpus']))]
    reason = str(node['reason'])
    takes = is_up and not flags & _CLOSED
    is_ours = (
        not takes and 'DRAIN' in flags and reason.startswith(partition.MARK)
    )
    closed_at = float(node['reason_changed_at'])
    saved_at = max(closed_at, over_at) + SAVED_S
    if is_ours and not work and now < saved_at:
        work = [partition.Work(_UNSAVED, 0.0, saved_at)]
    return partition.Place(
        takes,
        is_up,
        is_ours,
        reason,
        tuple(work),
    )


def _work(jobs: Iterable[Json]) -> dict[str, list[partition.Work]]:
    """Parts of jobs, by node."""
    found: dict[str, list[partition.Work]] = {}
    for job in jobs:
        if job['job_state'] == 'PENDING' or job['job_state'] in _ENDED:
            continue
        gone_at = None
        if job['time_limit'] is not None:
            gone_at = float(job['end_time'])
        for name, cpus in _cpus(job):
            found.setdefault(name, []).append(
                partition.Work(str(job['job_id']), cpus, gone_at)
            )
    return found


def _over_at(jobs: Iterable[Json]) -> dict[str, float]:
    """When the last of the jobs that are over ended, by node.

    Slurm lists them for ``MinJobAge``, 300 s unless it is told otherwise.
    """
    found: dict[str, float] = {}
    for job in jobs:
        if job['job_state'] in _ENDED:
            for name, _ in _cpus(job):
                at = float(job['end_time'])
                found[name] = max(found.get(name, 0.0), at)
    return found


def _cpus(job: Json) -> Iterator[tuple[str, float]]:
    """CPUs of a job by node, in proportion to its cores there."""
    given = job.get('job_resources')
    if not given:
        return
    cores = {
        node['nodename']: sum(
            len(socket['cores']) for socket in node['sockets'].values()
        )
        for node in given['allocated_nodes']
    }
    total = sum(cores.values()) or 1
    for name, count in cores.items():
        yield name, job['cpus'] * count / total


def _wants(jobs: Iterable[Json], largest: int) -> Iterator[partition.Want]:
    for job in jobs:
        waits = job['job_state'] == 'PENDING'
        if not waits or job['state_reason'] not in _ROOM_HELPS:
            continue
        cores = float(job['cpus'])
        if job['shared'] == 'none':
            cores = max(cores, float(job['node_count'] * largest))
        part = cores / max(job['node_count'], 1)
        since = float(job['eligible_time'] or job['submit_time'])
        for n in range(_tasks(job['array_task_string'])):
            name = f'{job["job_id"]}' + (f'+{n}' if n else '')
            yield partition.Want(name, cores, since, part)


_RANGE = re.compile(r'(\d+)(?:-(\d+)(?::(\d+))?)?')


def _tasks(text: str) -> int:
    """Number of jobs of an array that one line stands for, as ``1-9:2,20%4``.

    What runs at once at most counts, if that is fewer.
    """
    if not text:
        return 1
    listed, _, most = text.partition('%')
    count = 0
    for part in listed.split(','):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f'array_task_string {text!r}')
        first, last, step = match.groups()
        count += len(range(int(first), int(last or first) + 1, int(step or 1)))
    return min(count, int(most)) if most else count
