# SPDX-License-Identifier: Apache-2.0

"""HTCondor by its own commands; written from its manual, never run on one.

Attributes are those of the manual's appendix *ClassAd Attributes*, commands
those of its reference, version 23.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import json
from typing import Any

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import system
from nova_fairness.model import partition

Ad = Mapping[str, Any]

_SLOT = (
    'Machine',
    'State',
    'Cpus',
    'JobId',
    'Draining',
    'DrainReason',
    'Offline',
)
_JOB = (
    'ClusterId',
    'ProcId',
    'JobStatus',
    'JobUniverse',
    'RequestCpus',
    'QDate',
    'EnteredCurrentStatus',
    'JobCurrentStartDate',
    'AllowedJobDuration',
)
_IDLE = 1
"""Of ``JobStatus``: it waits. Those on hold, 5, want nothing."""

_NOT_ON_SLOTS = frozenset({7, 9, 12})
"""Of ``JobUniverse``: scheduler, grid and local need no slot."""

_CLAIMED = frozenset({'Claimed', 'Preempting'})
_TAKES = _CLAIMED | {'Unclaimed', 'Matched', 'Backfill'}
"""Of ``State``; ``Owner`` is a slot whose START expression forbids jobs."""


class Condor(system.BatchSystem):
    """HTCondor 23, by ``condor_status``, ``condor_q`` and ``condor_drain``.

    Hosts are called as in the attribute ``Machine``. HTCondor ends jobs on a
    host that is drained when their retirement time is over: a host is not
    drained unless that is long enough for all of its jobs.

    :param timeout_s: seconds in which a command must answer, > 0.
    :param retirement_s: seconds of retirement time that each job must have
        left, > 0; see ``MAXJOBRETIREMENTTIME`` of HTCondor.
    """

    description = (
        'HTCondor 23, by condor_status, condor_q and condor_drain; written'
        ' from its manual, never run on a real one.'
    )

    def __init__(
        self, timeout_s: float = 30.0, retirement_s: float = 86400.0
    ) -> None:
        self._timeout_s = timeout_s
        self._retirement_s = retirement_s

    def look(self) -> partition.Seen:
        """See :meth:`.system.BatchSystem.look`."""
        # Slots before jobs: nothing starts on a host that was drained then.
        slots = self._asked('condor_status', '-json', _SLOT)
        jobs = self._asked('condor_q', '-global', '-allusers', '-json', _JOB)
        return seen(slots, jobs)

    def drain(self, host: str, reason: str) -> None:
        """See :meth:`.system.BatchSystem.drain`."""
        check = (
            'State =!= "Claimed" || RetirementTimeRemaining >='
            f' {self._retirement_s:.0f}'
        )
        given = '-graceful', '-reason', reason, '-check', check
        self._order('condor_drain', *given, host)

    def undrain(self, host: str) -> None:
        """See :meth:`.system.BatchSystem.undrain`."""
        self._order('condor_drain', '-cancel', host)

    def _asked(self, *command: str | tuple[str, ...]) -> str:
        *words, attributes = command
        given = [*map(str, words), '-attributes', ','.join(attributes)]
        return commands.output(tuple(given), self._timeout_s)

    def _order(self, *command: str) -> None:
        """Order what :meth:`look` has just found possible."""
        refused = exception.BatchRefused
        commands.output(command, self._timeout_s, refused)


def seen(slots: str, jobs: str) -> partition.Seen:
    """What HTCondor says of its slots and jobs.

    :param slots: written by ``condor_status -json``.
    :param jobs: written by ``condor_q -json``, after it.
    :raises BatchUnreadable: if one is of another form, or lacks something.
    """
    by_host: dict[str, list[Ad]] = {}
    queue = _ads('condor_q', jobs)
    try:
        for slot in _ads('condor_status', slots):
            by_host.setdefault(slot['Machine'], []).append(slot)
        ends = {_name(job): _end(job) for job in queue}
        return partition.Seen(
            {host: _place(found, ends) for host, found in by_host.items()},
            tuple(_wants(queue)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise exception.BatchUnreadable(
            'HTCondor wrote JSON without what its manual says is there:'
            f' {type(error).__name__}: {error}'
        ) from error


def _ads(command: str, text: str) -> list[Ad]:
    """Of several lists one after the other, one of each queue, or of none."""
    decoder, rest = json.JSONDecoder(), text.strip()
    found: list[Ad] = []
    try:
        while rest:
            listed, end = decoder.raw_decode(rest)
            found += [dict(each) for each in listed]
            rest = rest[end:].strip()
    except (ValueError, TypeError) as error:
        raise exception.BatchUnreadable(
            f'{command} -json wrote no lists of ClassAds: {text[:100]!r}'
        ) from error
    return found


def _place(
    slots: list[Ad], ends: Mapping[str, float | None]
) -> partition.Place:
    is_up = not any(slot.get('Offline', False) for slot in slots)
    drained = [slot for slot in slots if slot.get('Draining', False)]
    takes = (
        is_up
        and not drained
        and any(slot['State'] in _TAKES for slot in slots)
    )
    reasons = [str(slot.get('DrainReason', '')) for slot in drained]
    reason = max(reasons, default='')
    return partition.Place(
        takes,
        is_up,
        not takes and reason.startswith(partition.MARK),
        reason,
        tuple(_work(slots, ends)),
    )


def _work(
    slots: Iterable[Ad], ends: Mapping[str, float | None]
) -> Iterator[partition.Work]:
    """A claimed slot is in use, also between two jobs of its user."""
    for slot in slots:
        if slot['State'] in _CLAIMED and float(slot['Cpus']) > 0:
            name = str(slot.get('JobId', 'unknown'))
            yield partition.Work(name, float(slot['Cpus']), ends.get(name))


def _name(job: Ad) -> str:
    return f'{job["ClusterId"]}.{job["ProcId"]}'


def _end(job: Ad) -> float | None:
    """When a job that runs is at its limit; ``None`` without one."""
    allowed = job.get('AllowedJobDuration')
    began = job.get('JobCurrentStartDate')
    if allowed is None or began is None:
        return None
    return float(began) + float(allowed)


def _wants(jobs: Iterable[Ad]) -> Iterator[partition.Want]:
    """HTCondor does not say which of them more hosts would help."""
    for job in jobs:
        waits = job['JobStatus'] == _IDLE
        if not waits or job['JobUniverse'] in _NOT_ON_SLOTS:
            continue
        since = float(job.get('EnteredCurrentStatus', job['QDate']))
        cores = float(job.get('RequestCpus', 1))
        yield partition.Want(_name(job), cores, since)
