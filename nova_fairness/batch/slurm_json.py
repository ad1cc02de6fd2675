# SPDX-License-Identifier: Apache-2.0

"""Reads nodes and jobs from each known form of Slurm's JSON."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import functools
import itertools
import json
import math
import re

from nova_fairness import exception
from nova_fairness.batch import entries
from nova_fairness.batch import slurm_forms
from nova_fairness.model import border

Json = slurm_forms.Json

_UP = frozenset({'IDLE', 'MIXED', 'ALLOCATED'})
_NOT_ANSWERING = frozenset({'NOT_RESPONDING', 'POWERED_DOWN', 'POWERING_DOWN'})
_CLOSED = frozenset({'DRAIN', 'FAIL', 'MAINTENANCE', 'RESERVED'})

ENDED = frozenset(
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
_BASES = ENDED - {'REVOKED'} | {'PENDING', 'RUNNING', 'SUSPENDED'}
_FLAGS = (
    'COMPLETING',
    'STAGE_OUT',
    'CONFIGURING',
    'EXPEDITING',
    'RESIZING',
    'REQUEUED',
    'REQUEUE_FED',
    'REQUEUE_HOLD',
    'SPECIAL_EXIT',
    'STOPPED',
    'REVOKED',
    'RESV_DEL_HOLD',
    'SIGNALING',
)
"""Flags of jobs. The first flag that a job has is the state that Slurm's
commands show (``job_state_string``).
"""

_ROOM_HELPS = frozenset(
    {'Resources', 'Priority', 'ReqNodeNotAvail', 'NodeDown'}
)
"""Reasons of waiting that more hosts can end. Other reasons are limits,
dependencies, times of begin and holds, and ``None``: not looked at yet.
"""

SAVED_S = 10.0
"""Seconds after which slurmctld still knows after a crash that a node was
closed, and that a job is over. It saves its state every 5 s when it is busy
(Slurm 22.05, SAVE_MAX_WAIT). After a crash before that, the node is open
again, and an ended job counts as running for minutes.
"""

_UNSAVED = 'what Slurm may not have saved'
_UNKNOWN = 'unknown'
"""Name of unknown work on a node that is busy although no job is listed
there.
"""


MOST_TASKS = 10_000
"""Largest number of tasks of one array that count."""

MOST_WANTS = 100_000
"""Largest number of waiting jobs and tasks that count, in Slurm's order."""


def parse_snapshot(nodes: str, jobs: str, now: float) -> border.SideSnapshot:
    """Parse the nodes and jobs of Slurm.

    A node or a job whose entry cannot be read is set aside, and named. Such a
    node is left out of the result. Such a job does not count as waiting; on
    nodes where it may run, the number of used CPUs that the node reports
    counts.

    :param nodes: JSON of all nodes.
    :param jobs: JSON of all jobs, read after the nodes.
    :param now: time of ``nodes``, seconds of the epoch.
    :raises BatchUnreadable: if one is of another form, or no node in it can be
        read.
    """
    form, listed = _form_and_entries(nodes, 'nodes')
    job_form, queue = _form_and_entries(jobs, 'jobs')
    read = entries.EntryReader('Slurm')
    found = read.by_name(
        'node', lambda node: node['name'], listed, _parse_node
    )
    known = {name: node for name, node in found.items() if node}
    if listed and not known:
        raise exception.BatchUnreadable(
            'Slurm wrote JSON that says it is'
            f' {slurm_forms.form_name(form)} and is not: {read.faults()[0]}'
        )
    largest = max((node.cpus for node in known.values()), default=1.0)
    if job_form == slurm_forms.SILENT:
        largest = 0.0
    parse = functools.partial(_parse_job, largest=largest)
    parsed = [each for _, each in read.read('job', _job_name, queue, parse)]
    for each in parsed:
        if each and each.is_cut:
            read.add_fault(_CUT.format(each.name))
    # Users choose the number of tasks, so demands are made one by one, up to a
    # limit.
    wants = (want for each in parsed if each for want in _task_demands(each))
    return border.SideSnapshot(
        _node_statuses(known, parsed, now),
        tuple(itertools.islice(wants, MOST_WANTS)),
        frozenset(found.keys() - known.keys()),
        read.faults(),
    )


_CUT = (
    'job {}: Slurm cut the list of its tasks short, and those that it lists'
    ' count; set SLURM_BITSTR_LEN=0 where slurmrestd runs'
)


def _form_and_entries(text: str, key: str) -> tuple[int, list[Json]]:
    """Return the form of an answer, and its entries."""
    try:
        written = json.loads(text)
        form = slurm_forms.form_of_answer(written)
    except exception.UNREADABLE as error:
        raise exception.BatchUnreadable(
            f'Slurm wrote {key} in no JSON that names its form: {text[:100]!r}'
        ) from error
    if written.get('errors') or not isinstance(written.get(key), list):
        raise exception.BatchUnreadable(
            f'Slurm wrote no list of {key}, and errors'
            f' {written.get("errors")!r}'
        )
    return form, written[key]


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    """Entry of a node.

    :ivar allocated: number of CPUs of its jobs.
    :ivar is_completing: whether a job on the node is ending.
    :ivar closed_at: when its reason was written, seconds of the epoch.
    """

    cpus: float
    allocated: float
    is_up: bool
    is_completing: bool
    flags: frozenset[str]
    reason: str
    closed_at: float


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """Entry of a job, or of all waiting tasks of an array.

    :ivar parts: nodes and work of a running job.
    :ivar over: nodes of a job that is over, and when it ended.
    :ivar want: demand of a waiting job, or of each task of an array.
    :ivar tasks: number of tasks with this demand.
    :ivar is_cut: whether Slurm does not list all tasks of the array.
    """

    name: str
    parts: tuple[tuple[str, border.RunningWork], ...] = ()
    over: tuple[tuple[str, float], ...] = ()
    want: border.PendingWork | None = None
    tasks: int = 0
    is_cut: bool = False


def _parse_node(node: Json) -> _Node:
    flags = slurm_forms.upper_words(node['state'])
    if not isinstance(node['state'], list):
        entries.checked_text(node['state'])
        flags |= slurm_forms.upper_words(
            entries.checked_list(node['state_flags'])
        )
    return _Node(
        slurm_forms.number(node, 'cpus'),
        slurm_forms.number(node, 'alloc_cpus'),
        bool(flags & _UP) and not flags & _NOT_ANSWERING,
        'COMPLETING' in flags,
        flags,
        entries.displayable_text(node['reason']),
        slurm_forms.number(node, 'reason_changed_at'),
    )


def _node_statuses(
    nodes: Mapping[str, _Node], jobs: Iterable[_Job | None], now: float
) -> dict[str, border.SideStatus]:
    """Return the states of all nodes, with their work.

    :param jobs: ``None`` for a job that cannot be read: it may run anywhere.
    """
    work: dict[str, list[border.RunningWork]] = {}
    over_at: dict[str, float] = {}
    is_unsure = False
    for job in jobs:
        if job is None:
            is_unsure = True
            continue
        for name, part in job.parts:
            work.setdefault(name, []).append(part)
        for name, at in job.over:
            over_at[name] = max(over_at.get(name, 0.0), at)
    return {
        name: _node_status(
            node,
            [*work.get(name, ())],
            over_at.get(name, 0.0),
            now,
            is_unsure,
        )
        for name, node in nodes.items()
    }


def _node_status(
    node: _Node,
    work: list[border.RunningWork],
    over_at: float,
    now: float,
    is_unsure: bool,
) -> border.SideStatus:
    """Return the state of one node.

    :param over_at: when the last of its ended jobs ended.
    :param is_unsure: whether a job that cannot be read may run there.
    """
    unlisted = node.allocated - sum(each.cores for each in work)
    is_busy = bool(node.allocated) or node.is_completing
    if (is_busy and not work) or (is_unsure and unlisted > _ROUNDING):
        work = [*work, border.RunningWork(_UNKNOWN, max(unlisted, 0.0))]
    takes = node.is_up and not node.flags & _CLOSED
    is_ours = (
        not takes
        and 'DRAIN' in node.flags
        and node.reason.startswith(border.MARK)
    )
    saved_at = max(node.closed_at, over_at) + SAVED_S
    if is_ours and not work and now < saved_at:
        work = [border.RunningWork(_UNSAVED, 0.0, saved_at)]
    return border.SideStatus(
        takes, node.is_up, is_ours, node.reason, tuple(work)
    )


_ROUNDING = 0.5
"""Number of CPUs; a smaller difference is no job."""


def _job_name(job: Json) -> str:
    return str(int(slurm_forms.number(job, 'job_id')))


def _parse_job(job: Json, largest: float) -> _Job:
    """Parse the entry of a job.

    :param largest: CPUs of the largest node; 0 if a job does not tell whether
        it wants whole nodes.
    """
    name, state = _job_name(job), _parse_state(job['job_state'])
    if state == 'PENDING':
        if job['state_reason'] not in _ROOM_HELPS:
            return _Job(name)
        count, is_cut = _count_tasks(job['array_task_string'])
        want = _demand_of(job, name, largest)
        return _Job(name, want=want, tasks=count, is_cut=is_cut)
    if state in ENDED:
        at = slurm_forms.number(job, 'end_time')
        return _Job(
            name, over=tuple((node, at) for node, _ in _cpus_by_node(job))
        )
    gone_at = None
    if slurm_forms.optional_number(job['time_limit']) not in {None, math.inf}:
        gone_at = slurm_forms.number(job, 'end_time')
    # Slurm lists ended jobs for MinJobAge, 300 s by default.
    return _Job(
        name,
        tuple(
            (node, border.RunningWork(name, cpus, gone_at))
            for node, cpus in _cpus_by_node(job)
        ),
    )


def _parse_state(value: object) -> str:
    """Return the state of a job; newer forms list several states and flags."""
    if not isinstance(value, list):
        return entries.checked_text(value)
    every = slurm_forms.upper_words(value)
    for flag in _FLAGS:
        if flag in every:
            return flag
    bases = [*(every & _BASES)]
    if len(bases) != 1:
        raise ValueError(f'job_state has {value!r:.100}')
    return bases[0]


def _cpus_by_node(job: Json) -> Iterator[tuple[str, float]]:
    """Yield the CPUs of a job by node."""
    given = job.get('job_resources')
    if not given:
        return
    if 'allocated_nodes' not in given:
        for node in entries.checked_list(given['nodes']['allocation']):
            count = slurm_forms.number(node['cpus'], 'count')
            yield entries.checked_text(node['name']), count
        return
    # Until v0.0.40: CPUs in proportion to the cores on each node.
    cores = {
        entries.checked_text(node['nodename']): sum(
            len(socket['cores']) for socket in node['sockets'].values()
        )
        for node in entries.checked_list(given['allocated_nodes'])
    }
    total = sum(cores.values()) or 1
    cpus = slurm_forms.number(job, 'cpus')
    for name, count in cores.items():
        yield name, cpus * count / total


def _demand_of(job: Json, name: str, largest: float) -> border.PendingWork:
    """Demand of a job, or of one task of an array."""
    cores = slurm_forms.number(job, 'cpus')
    nodes = slurm_forms.number(job, 'node_count')
    if largest and 'NONE' in slurm_forms.upper_words(job['shared']):
        cores = max(cores, nodes * largest)
    cores = max(cores, nodes)
    if not 0 < cores < math.inf:
        raise ValueError(f'it waits and wants CPUs: {cores:g}')
    part = cores / max(nodes, 1.0)
    is_eligible = slurm_forms.optional_number(job['eligible_time'])
    since = 'eligible_time' if is_eligible else 'submit_time'
    return border.PendingWork(
        name, cores, slurm_forms.number(job, since), part
    )


def _task_demands(job: _Job) -> Iterator[border.PendingWork]:
    """Yield the demands of all tasks of a job."""
    if job.want is not None:
        for n in range(min(job.tasks, MOST_TASKS)):
            numbered = job.name + (f'+{n}' if n else '')
            yield dataclasses.replace(job.want, name=numbered)


_RANGE = re.compile(r'([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?')
_ELLIPSIS = '...'


def _count_tasks(text: str | None) -> tuple[int, bool]:
    """Number of tasks in the list of an array, such as ``1-9:2,20%4``.

    The limit of simultaneous tasks counts if it is smaller. Slurm cuts the
    list at 64 characters, unless SLURM_BITSTR_LEN says otherwise.

    :returns: the number, and whether the list is cut so that the number is too
        small.
    """
    if not text:
        return 1, False
    listed, _, most = text.partition('%')
    parts = listed.split(',')
    is_cut = parts[-1].endswith(_ELLIPSIS)
    if is_cut:
        # The number before the dots may have lost digits.
        parts = parts[:-1]
    count = sum(map(_count_tasks_of_range, parts)) or 1
    if most:
        limit = int(entries.checked_number(most))
        return min(count, limit), is_cut and count < limit
    return count, is_cut


def _count_tasks_of_range(part: str) -> int:
    """Number of tasks of a part of the list.

    :raises ValueError: if the part has another form.
    """
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ValueError(f'array_task_string has {part!r:.100}')
    first, last, step = match.groups()
    every = int(step or 1)
    if not every:
        raise ValueError(f'array_task_string has {part!r:.100}')
    return len(range(int(first), int(last or first) + 1, every))
