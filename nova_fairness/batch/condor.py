# SPDX-License-Identifier: Apache-2.0

"""HTCondor by its own commands.

Attributes are those of the manual's appendix *ClassAd Attributes*, commands
those of its reference, version 23.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import json
import time
from typing import Any

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import entries
from nova_fairness.batch import system
from nova_fairness.model import border

Ad = Mapping[str, Any]

_SLOT = (
    'Machine',
    'State',
    'Activity',
    'Cpus',
    'JobId',
    'GlobalJobId',
    'Draining',
    'DrainReason',
    'Offline',
)
_JOB = (
    'ClusterId',
    'ProcId',
    'GlobalJobId',
    'JobStatus',
    'JobUniverse',
    'RequestCpus',
    'QDate',
    'EnteredCurrentStatus',
    'JobCurrentStartDate',
    'AllowedJobDuration',
)
_IDLE = 1
"""Value of ``JobStatus`` of a job that waits. Jobs on hold (5) are not
counted.
"""

_NO_JOBS = 'All queues are empty'
"""Output of ``condor_q -global``, also with ``-json``, if there are no
jobs.
"""

_NOT_ON_SLOTS = frozenset({7, 9, 12})
"""Values of ``JobUniverse`` that need no slot: scheduler, grid and local."""

_CLAIMED = frozenset({'Claimed', 'Preempting'})
_TAKES = _CLAIMED | {'Unclaimed', 'Matched', 'Backfill'}
"""Values of ``State`` of a slot that takes jobs; ``Owner`` is a slot whose
START expression forbids jobs.
"""

_STATES = _TAKES | {'Owner', 'Drained'}

_DRAINED = 'Drained', 'Idle'
"""State and activity of each slot of a host on which all work has ended. Until
then, slots without work are ``Drained`` and ``Retiring``.
"""

_UNKNOWN = 'unknown'
"""Name of work that is not known: between two jobs, or not listed yet."""

_LOOK_S = 0.5
"""Seconds between two looks for a change. Hosts report changes after 1 s."""


class Condor(system.BatchSystem):
    """HTCondor 23, by ``condor_status``, ``condor_q`` and ``condor_drain``.

    Names of hosts are those of the attribute ``Machine``. On a drained host,
    HTCondor ends jobs when their retirement time is over. So a host is drained
    only if that time is long enough for all of its jobs.

    :param timeout_s: seconds in which a command must answer, > 0.
    :param retirement_s: seconds of retirement time that each job must have
        left, > 0; see ``MAXJOBRETIREMENTTIME`` of HTCondor.
    """

    description = 'HTCondor 23, by condor_status, condor_q and condor_drain.'

    def __init__(
        self, timeout_s: float = 30.0, retirement_s: float = 86400.0
    ) -> None:
        self._timeout_s = timeout_s
        self._retirement_s = retirement_s

    def read_hosts(self) -> border.SideSnapshot:
        """See :meth:`.system.BatchSystem.read_hosts`."""
        # Slots before jobs: nothing starts on a host that is drained in the
        # list of slots.
        slots = self._read_ads('condor_status', '-json', _SLOT)
        jobs = self._read_ads(
            'condor_q', '-global', '-allusers', '-json', _JOB
        )
        return parse_snapshot(slots, jobs)

    def drain(self, host: str, reason: str) -> None:
        """See :meth:`.system.BatchSystem.drain`."""
        check = (
            'State =!= "Claimed" || RetirementTimeRemaining >='
            f' {self._retirement_s:.0f}'
        )
        given = '-graceful', '-reason', reason, '-check', check
        self._run_change('condor_drain', *given, host)
        self._await_drain(host)

    def _await_drain(self, host: str) -> None:
        """Wait until the collector knows that a host is drained.

        :raises BatchAway: if it does not know within the time of a command.
        """
        deadline = time.monotonic() + self._timeout_s
        while self._find_status(host).takes:
            if time.monotonic() > deadline:
                raise exception.BatchAway(
                    f'host {host}: it was drained, and the collector does not'
                    f' know it after {self._timeout_s:g} s'
                )
            time.sleep(_LOOK_S)

    def undrain(self, host: str) -> None:
        """See :meth:`.system.BatchSystem.undrain`."""
        self._run_change('condor_drain', '-cancel', host)

    def _read_ads(self, *command: str | tuple[str, ...]) -> str:
        *words, attributes = command
        given = [*map(str, words), '-attributes', ','.join(attributes)]
        return commands.output(tuple(given), self._timeout_s)

    def _run_change(self, *command: str) -> None:
        """Run a command that :meth:`read_hosts` has just found possible."""
        refused = exception.BatchRefused
        commands.output(command, self._timeout_s, refused)


def parse_snapshot(slots: str, jobs: str) -> border.SideSnapshot:
    """Parse the slots and jobs of HTCondor.

    A host with a slot that cannot be read is left out of the result. A job
    that cannot be read has no known end, and does not count as waiting.

    :param slots: output of ``condor_status -json``.
    :param jobs: output of ``condor_q -json``, read after the slots.
    :raises BatchUnreadable: if an output has another form, or no host in it
        can be read.
    """
    read = entries.EntryReader('HTCondor')
    listed = _parse_ads('condor_status', slots)
    queued = [] if jobs.strip() == _NO_JOBS else _parse_ads('condor_q', jobs)
    queue = list(read.read('job', _job_name, queued, _parse_job))
    ends = {job.queued: job.end for _, job in queue if job}
    by_host: dict[str, list[_Slot | None]] = {}
    for host, slot in read.read('slot', _host_name, listed, _parse_slot):
        by_host.setdefault(host, []).append(slot)
    unclear = {host for host, found in by_host.items() if None in found}
    if listed and not by_host.keys() - unclear:
        raise exception.BatchUnreadable(
            'HTCondor wrote JSON without what its manual says is there:'
            f' {read.faults()[0]}'
        )
    places = {
        host: _host_status([slot for slot in found if slot], ends)
        for host, found in by_host.items()
        if host not in unclear
    }
    if '' in unclear:
        # A slot without a name may belong to any host.
        places = {host: each for host, each in places.items() if each.work}
    wants = (job.want for _, job in queue if job and job.want)
    return border.SideSnapshot(
        places, tuple(wants), frozenset(unclear), read.faults()
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Slot:
    """ClassAd of a slot.

    :ivar drained: reason why the slot is drained; ``None`` if it is not.
    :ivar job: number of the job in the slot.
    :ivar queued: name of the job in all queues.
    """

    state: str
    activity: str
    cpus: float
    is_offline: bool
    drained: str | None
    job: str
    queued: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """ClassAd of a job.

    :ivar queued: its name in all queues; numbers repeat from queue to queue.
    :ivar end: time of its limit; ``None`` without a limit.
    :ivar want: demand of the job; ``None`` unless it waits for a slot.
    """

    queued: str
    end: float | None
    want: border.PendingWork | None


def _host_name(slot: Ad) -> str:
    return entries.checked_text(slot['Machine'])


def _parse_slot(slot: Ad) -> _Slot:
    reason, state = (
        entries.displayable_text(slot.get('DrainReason', '')),
        slot['State'],
    )
    if entries.checked_text(state) not in _STATES:
        raise ValueError(f'State {state!r:.100} is not known')
    return _Slot(
        state,
        entries.checked_text(slot['Activity']),
        entries.checked_number(slot['Cpus']),
        bool(slot.get('Offline', False)),
        reason if slot.get('Draining', False) else None,
        entries.displayable_text(slot.get('JobId', _UNKNOWN)),
        entries.displayable_text(slot.get('GlobalJobId', '')),
    )


def _parse_job(job: Ad) -> _Job:
    queued = entries.checked_text(job['GlobalJobId'])
    return _Job(queued, _end_time(job), _demand_of(job))


def _parse_ads(command: str, text: str) -> list[Ad]:
    """Parse several JSON lists, one after the other.

    Each queue of HTCondor writes one list or none.
    """
    decoder, rest = json.JSONDecoder(), text.strip()
    found: list[Ad] = []
    try:
        while rest:
            listed, end = decoder.raw_decode(rest)
            found += entries.checked_list(listed)
            rest = rest[end:].strip()
    except exception.UNREADABLE as error:
        raise exception.BatchUnreadable(
            f'{command} -json wrote no lists of ClassAds: {text[:100]!r}'
        ) from error
    return found


def _host_status(
    slots: list[_Slot], ends: Mapping[str, float | None]
) -> border.SideStatus:
    is_up = not any(slot.is_offline for slot in slots)
    drained = [slot.drained for slot in slots if slot.drained is not None]
    takes = (
        is_up and not drained and any(slot.state in _TAKES for slot in slots)
    )
    reason = max(drained, default='')
    return border.SideStatus(
        takes,
        is_up,
        not takes and reason.startswith(border.MARK),
        reason,
        tuple(_running_work(slots, ends)),
    )


def _running_work(
    slots: list[_Slot], ends: Mapping[str, float | None]
) -> Iterator[border.RunningWork]:
    """Yield work of claimed slots, which are in use also between two jobs.

    Slots are reported one by one. A host that is drained has ended its work
    only when each slot says so.
    """
    claimed = [slot for slot in slots if slot.state in _CLAIMED]
    for slot in claimed:
        yield border.RunningWork(slot.job, slot.cpus, ends.get(slot.queued))
    is_draining = any(slot.drained is not None for slot in slots)
    states = {(slot.state, slot.activity) for slot in slots}
    if is_draining and not claimed and states != {_DRAINED}:
        yield border.RunningWork(_UNKNOWN, 0.0)


def _job_name(job: Ad) -> str:
    cluster, proc = (
        int(entries.checked_number(job[key]))
        for key in ('ClusterId', 'ProcId')
    )
    return f'{cluster}.{proc}'


def _end_time(job: Ad) -> float | None:
    """Return the time limit of a running job, seconds of the epoch; ``None``
    if it has no limit.
    """
    allowed = job.get('AllowedJobDuration')
    began = job.get('JobCurrentStartDate')
    if allowed is None or began is None:
        return None
    return entries.checked_number(began) + entries.checked_number(allowed)


def _demand_of(job: Ad) -> border.PendingWork | None:
    """Return the demand of a waiting job; ``None`` if the job does not wait.

    HTCondor does not report whether more hosts would help the job.
    """
    waits = job['JobStatus'] == _IDLE
    if not waits or int(job['JobUniverse']) in _NOT_ON_SLOTS:
        return None
    since = entries.checked_number(
        job.get('EnteredCurrentStatus', job['QDate'])
    )
    cores = entries.checked_number(job.get('RequestCpus', 1))
    if not cores:
        raise ValueError('idle job requests no CPUs (RequestCpus is 0)')
    return border.PendingWork(_job_name(job), cores, since, cores)
