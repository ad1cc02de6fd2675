# SPDX-License-Identifier: Apache-2.0

"""Columns of ``sacct`` and ``sacctmgr``: what jobs had, and shares.

``sacctmgr`` of Slurm 22.05 writes no JSON, and ``sacct`` writes much more of
it than is needed here; both write columns that are alike in all versions.
"""

from collections.abc import Iterator
from collections.abc import Sequence

from nova_fairness import exception
from nova_fairness.model import pledge

SPENT = ('Account', 'AllocCPUS', 'Start', 'End')
SHARES = ('Cluster', 'Account', 'User', 'ParentName', 'Fairshare')

_UNKNOWN = frozenset({'Unknown', 'None', ''})
"""A time that is none: of what has not started, or not ended."""


def spent(text: str, since: float, now: float) -> tuple[pledge.Spent, ...]:
    """What jobs had that ran between two moments.

    :param text: columns :data:`SPENT`; times are seconds of the epoch.
    :param since: seconds of the epoch.
    :param now: likewise.
    :raises BatchUnreadable: if a line is of another form.
    """
    found = []
    for account, cores, start, end in _rows('sacct', text, SPENT):
        if start in _UNKNOWN or not account:
            continue
        try:
            begin = float(start)
            ended = None if end in _UNKNOWN else float(end)
            amount = float(cores)
        except ValueError:
            raise exception.BatchUnreadable(
                'sacct wrote a job with the cores and times'
                f' {cores!r}, {start!r} and {end!r}; expected numbers'
            ) from None
        if begin <= now and (ended is None or ended > since):
            found.append(pledge.Spent(account, amount, begin, ended))
    return tuple(found)


def shares(text: str, cluster_name: str) -> dict[str, pledge.BatchShare]:
    """Accounts of a cluster by name.

    :param text: columns :data:`SHARES`; lines with a user are not of
        accounts.
    :param cluster_name: of the cluster.
    :raises BatchUnreadable: if a line is of another form.
    """
    found = {}
    for where, account, user, parent, share in _rows('sacctmgr', text, SHARES):
        if user or where != cluster_name:
            continue
        if not share.isdecimal():
            # ``parent``: it has no share of its own.
            share = '0'
        found[account] = pledge.BatchShare(parent, int(share))
    return found


def cluster(text: str) -> str:
    """Name of the cluster.

    :param text: of ``scontrol show config``.
    :raises BatchUnreadable: if it has none.
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
