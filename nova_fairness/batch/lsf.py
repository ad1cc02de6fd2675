# SPDX-License-Identifier: Apache-2.0

"""LSF by its own commands; written from its reference, never run on it.

Fields are those of ``bhosts -o`` and ``bjobs -o`` in the command reference of
IBM Spectrum LSF 10.1.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import functools
import json
import re
import time

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import entries
from nova_fairness.batch import system
from nova_fairness.model import border

Record = Mapping[str, str]

_HOST = 'host_name status max njobs'
_JOB = (
    'jobid jobindex stat exec_host nreq_slot pend_time run_time runtimelimit'
)
_JOB += ' pend_reason'

_TAKES = frozenset({'ok', 'closed_Full', 'closed_Busy', 'closed_Excl'})
"""Values of ``STATUS`` of an open host, even if it has no room now."""

_AWAY = frozenset({'unavail', 'unreach'})
_OURS = 'closed_Adm'
_RUNS = frozenset({'RUN', 'SSUSP', 'USUSP', 'UNKWN', 'PROV'})
_NO_ROOM_HELPS = re.compile(
    'dependency|limit|start time|queue|suspended', re.IGNORECASE
)
"""Pending reasons that more hosts do not resolve."""

_NO_JOBS = 'No unfinished job found'
_UNKNOWN = 'unknown'
_COMMENT = re.compile(
    r'^HOST\s+(?P<host>\S+)\s*$|ADMIN ACTION COMMENTS?:\s*"?(?P<text>[^"\n]*)',
    re.MULTILINE,
)
_EACH = re.compile(r'(?:(\d+)\*)?([^:*]+)')
_HMS = re.compile(r'(\d+):(\d\d):(\d\d)')


class Lsf(system.BatchSystem):
    """LSF 10.1, by ``bhosts``, ``bjobs`` and ``badmin``.

    The user that runs the commands must be an administrator of LSF, and see
    all jobs (``SECURE_JOB_INFO_LEVEL``).

    :param timeout_s: seconds in which a command must answer, > 0.
    """

    description = (
        'LSF 10.1, by bhosts, bjobs and badmin; written from its command'
        ' reference, never run on a real one.'
    )

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s

    def read_hosts(self) -> border.SideSnapshot:
        """See :meth:`.system.BatchSystem.read_hosts`."""
        # Hosts before jobs: nothing starts on a host that is closed in the
        # list of hosts.
        hosts = self._output('bhosts', '-o', _HOST, '-json')
        comments = self._output('bhosts', '-l')
        try:
            jobs = self._output(
                'bjobs', '-u', 'all', '-o', _JOB, '-json', '-hms'
            )
        except exception.BatchAway as error:
            if _NO_JOBS not in str(error):
                raise
            jobs = ''
        return parse_snapshot(hosts, comments, jobs, time.time())

    def drain(self, host: str, reason: str) -> None:
        """See :meth:`.system.BatchSystem.drain`."""
        self._run_change(
            'badmin', 'hclose', '-C', reason.replace('"', "'"), host
        )

    def undrain(self, host: str) -> None:
        """See :meth:`.system.BatchSystem.undrain`."""
        self._run_change('badmin', 'hopen', host)

    def _output(self, *command: str) -> str:
        return commands.output(command, self._timeout_s)

    def _run_change(self, *command: str) -> None:
        """Run a command that :meth:`read_hosts` has just found possible."""
        refused = exception.BatchRefused
        commands.output(command, self._timeout_s, refused)


def parse_snapshot(
    hosts: str, comments: str, jobs: str, now: float
) -> border.SideSnapshot:
    """Parse the hosts and jobs of LSF.

    A host or a job whose record cannot be read is set aside, and named. Such a
    host is left out of the result. Such a job does not count as waiting; on
    hosts where it may run, the host's own number of used slots counts.

    :param hosts: output of ``bhosts -o ... -json``.
    :param comments: output of ``bhosts -l``.
    :param jobs: output of ``bjobs -o ... -json -hms``, read after both; empty
        if there are no jobs.
    :param now: time of the output, seconds of the epoch.
    :raises BatchUnreadable: if an output has another form, or no host in it
        can be read.
    """
    listed = _parse_records('bhosts', hosts)
    queue = _parse_records('bjobs', jobs) if jobs.strip() else []
    said = _parse_comments(comments)
    read = entries.EntryReader('LSF')
    parsed = [
        job
        for _, job in read.read(
            'job', _job_name, queue, functools.partial(_parse_job, now=now)
        )
    ]
    work: dict[str, list[border.RunningWork]] = {}
    for host, each in (pair for job in parsed if job for pair in job.parts):
        work.setdefault(host, []).append(each)

    def place(host: Record) -> border.SideStatus:
        name = _host_name(host)
        return _host_status(
            host, said.get(name, ''), work.get(name, []), None in parsed
        )

    found = read.by_name('host', _host_name, listed, place)
    places = {name: each for name, each in found.items() if each}
    if listed and not places:
        raise exception.BatchUnreadable(
            'LSF wrote JSON without what its reference says is there:'
            f' {read.faults()[0]}'
        )
    return border.SideSnapshot(
        places,
        tuple(job.want for job in parsed if job and job.want),
        frozenset(found.keys() - places.keys()),
        read.faults(),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """Record of a job.

    :ivar parts: hosts and work of a running job.
    :ivar want: demand of the job; ``None`` unless it waits for room.
    """

    parts: tuple[tuple[str, border.RunningWork], ...]
    want: border.PendingWork | None


def _host_name(host: Record) -> str:
    return entries.checked_text(host['HOST_NAME'])


def _parse_job(job: Record, now: float) -> _Job:
    return _Job(tuple(_running_parts(job, now)), _demand_of(job, now))


def _parse_records(command: str, text: str) -> list[Record]:
    try:
        written = json.loads(text)
        is_it = written['COMMAND'] == command
        found: list[Record] = written['RECORDS']
    except exception.UNREADABLE as error:
        raise exception.BatchUnreadable(
            f'{command} -json wrote no JSON with COMMAND and RECORDS:'
            f' {text[:100]!r}'
        ) from error
    if not is_it or not isinstance(found, list):
        raise exception.BatchUnreadable(
            f'{command} -json wrote other JSON: {text[:100]!r}'
        )
    return found


def _parse_comments(text: str) -> dict[str, str]:
    """Return the comments of closed hosts, by host."""
    found, host = {}, ''
    for match in _COMMENT.finditer(text):
        if match['host']:
            host = match['host']
        else:
            found[host] = entries.displayable_text(match['text'].strip())
    return found


def _host_status(
    host: Record,
    comment: str,
    work: list[border.RunningWork],
    is_unsure: bool,
) -> border.SideStatus:
    """Return the state of one host.

    :param is_unsure: whether a job that cannot be read may run there.
    """
    status = entries.checked_text(host['STATUS'])
    busy = entries.checked_number(host['NJOBS'])
    unlisted = busy - sum(each.cores for each in work)
    if unlisted > 0 and (is_unsure or not work):
        work = [*work, border.RunningWork(_UNKNOWN, unlisted)]
    reason = '' if status in _TAKES else comment or status
    return border.SideStatus(
        status in _TAKES,
        status not in _AWAY,
        status == _OURS and comment.startswith(border.MARK),
        reason,
        tuple(work),
    )


def _job_name(job: Record) -> str:
    index = job['JOBINDEX']
    of_array = f'[{index}]' if index not in ('', '-', '0') else ''
    return entries.checked_text(entries.checked_text(job['JOBID']) + of_array)


def _running_parts(
    job: Record, now: float
) -> Iterator[tuple[str, border.RunningWork]]:
    """Yield the slots of a job on each of its hosts, from
    ``4*hostA:hostB``.
    """
    if job['STAT'] not in _RUNS:
        return
    gone_at, limit = None, _parse_seconds(job['RUNTIMELIMIT'])
    if limit is not None:
        gone_at = now + max(
            limit - (_parse_seconds(job['RUN_TIME']) or 0.0), 0.0
        )
    for match in _EACH.finditer(job['EXEC_HOST']):
        slots = entries.checked_number(match[1] or 1)
        host = entries.checked_text(match[2])
        yield host, border.RunningWork(_job_name(job), slots, gone_at)


def _demand_of(job: Record, now: float) -> border.PendingWork | None:
    waits = job['STAT'] == 'PEND'
    if not waits or _NO_ROOM_HELPS.search(job['PEND_REASON']):
        return None
    slots = job['NREQ_SLOT']
    cores = entries.checked_number(slots) if slots not in ('', '-') else 1.0
    if not cores:
        raise ValueError('pending job requests no slots (NREQ_SLOT is 0)')
    since = now - (_parse_seconds(job['PEND_TIME']) or 0.0)
    return border.PendingWork(_job_name(job), cores, since)


def _parse_seconds(text: str) -> float | None:
    """Return the seconds of a time in the format of ``-hms``; ``None`` for
    an empty text.

    :raises ValueError: if the text is no such time.
    """
    if text.strip() in ('', '-'):
        return None
    match = _HMS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'no time as hh:mm:ss: {text!r}')
    hours, minutes, seconds = map(int, match.groups())
    return float(hours * 3600 + minutes * 60 + seconds)
