# SPDX-License-Identifier: Apache-2.0

"""Reads columns of ``sacct`` and ``sacctmgr``: use of jobs, and shares.

``sacctmgr`` of Slurm 22.05 writes no JSON, and the JSON of ``sacct`` has much
more than is needed here. The columns of both are the same in all versions.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.batch import entries
from nova_fairness.batch import slurm_json
from nova_fairness.model import pledge

SPENT = ('JobIDRaw', 'Account', 'AllocCPUS', 'Start', 'End')
LISTED = ('%A', '%T', '%e')
"""Columns of ``squeue``: number of the job, its state, and when it ended."""

SHARES = ('Cluster', 'Account', 'User', 'ParentName', 'Fairshare')

_UNKNOWN = frozenset({'Unknown', 'None', 'N/A', 'NONE', ''})
"""Texts in place of a time if a job has not started, or not ended."""

_RUNAWAY = (
    'job {} of account {}: accounting has no end of it, and squeue does not'
    ' list it as running; it is not charged; see "sacctmgr show runawayjobs"'
)


def parse_listed_jobs(text: str) -> dict[str, float | None]:
    """Return running jobs, and ends of other jobs that slurmctld knows.

    :param text: columns :data:`LISTED` of jobs in all states; times are
        seconds of the epoch.
    :returns: time of the end by number of the job; ``None`` for a running job.
        A line of another form is left out.
    """
    found: dict[str, float | None] = {}
    for line in text.splitlines():
        number, state, end = (*line.split('|'), '', '')[: len(LISTED)]
        if state in slurm_json.ENDED:
            if end.isdecimal():
                found.setdefault(number, float(end))
        elif state and state != 'PENDING':
            found[number] = None
    return found


def parse_accounting(
    text: str, known: Mapping[str, float | None], since: float, now: float
) -> pledge.Accounting:
    """Return the use of jobs that ran between two times.

    A job without an end in the accounts counts as running only if slurmctld
    says so: the message about its end may have been lost.

    :param text: columns :data:`SPENT`; times are seconds of the epoch.
    :param known: result of :func:`parse_listed_jobs`, older than ``text``.
    :param since: seconds of the epoch.
    :param now: seconds of the epoch.
    :raises BatchUnreadable: if no line can be read.
    """
    lines = text.splitlines()
    read = entries.EntryReader('Slurm')
    rows = [row for _, row in read.read('job', _job_number, lines, _parse_row)]
    if lines and not any(rows):
        raise exception.BatchUnreadable(read.faults()[0])
    found = []
    for row in rows:
        if row is None or row.begin is None or row.begin > now:
            continue
        end = known.get(row.job) if row.end is None else row.end
        if end is None and row.job not in known:
            read.add_fault(_RUNAWAY.format(row.job, row.account))
        elif row.account and (end is None or end > since):
            job = pledge.Spent(row.account, row.cores, row.begin, end)
            found.append(job)
    return pledge.Accounting(tuple(found), read.faults())


class _Row(NamedTuple):
    """A line of ``sacct``; an unknown time is ``None``."""

    job: str
    account: str
    cores: float
    begin: float | None
    end: float | None


def _job_number(line: str) -> str:
    return line.partition('|')[0]


def _parse_row(line: str) -> _Row:
    cells = line.split('|')
    if len(cells) != len(SPENT):
        raise ValueError(
            f'sacct wrote {line[:100]!r}; expected the columns'
            f' {"|".join(SPENT)}'
        )
    job, account, cores, start, end = cells
    return _Row(
        job,
        account,
        entries.checked_number(cores),
        _parse_time(start),
        _parse_time(end),
    )


def _parse_time(text: str) -> float | None:
    return None if text in _UNKNOWN else entries.checked_number(text)


def parse_shares(text: str, cluster_name: str) -> dict[str, pledge.BatchShare]:
    """Return the accounts of a cluster, with their shares, by name.

    :param text: columns :data:`SHARES`; lines with a user are left out.
    :param cluster_name: name of the cluster.
    :raises BatchUnreadable: if a line has another form.
    """
    found = {}
    for where, account, user, parent, share in _rows('sacctmgr', text, SHARES):
        if user or where != cluster_name:
            continue
        if not share.isdecimal():
            # ``parent``: the account has no share of its own.
            share = '0'
        found[account] = pledge.BatchShare(parent, int(share))
    return found


def parse_cluster_name(text: str) -> str:
    """Return the name of the cluster.

    :param text: output of ``scontrol show config``.
    :raises BatchUnreadable: if the output has no name.
    """
    for line in text.splitlines():
        key, _, value = line.partition('=')
        if key.strip() == 'ClusterName':
            return value.strip()
    raise exception.BatchUnreadable(
        'scontrol show config wrote no ClusterName'
    )


def _rows(
    command: str, text: str, columns: Sequence[str]
) -> Iterator[list[str]]:
    for line in text.splitlines():
        cells = line.split('|')
        if len(cells) != len(columns):
            raise exception.BatchUnreadable(
                f'{command} wrote {line[:100]!r}; expected the columns'
                f' {"|".join(columns)}'
            )
        yield cells
