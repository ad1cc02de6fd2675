# SPDX-License-Identifier: Apache-2.0

"""Pledges: one share of a group for both batch system and cloud, and one
record of its use.

Use is measured as a part of the hosts between batch and cloud, multiplied by
time: a job with half of their cores for an hour counts as much as a server
with half of their scarcest resource for an hour. The use of both sides decays
with the half-life of the ledger.

The queue counts the use that a group makes of the batch system as use of the
cloud. The batch system knows only its own use. Therefore the batch shares of
the groups are adjusted (:mod:`.shares.batch_correction`); the sum of their
shares does not change.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import pledge
from nova_fairness.shares import batch_correction
from nova_fairness.shares import ledger as ledger_module
from nova_fairness.shares import tree as tree_module

Floats = npt.NDArray[np.float64]

NEAR = 0.05
"""Largest relative error of a share that is not corrected."""

FINE = 100
"""Smallest average number of batch shares that groups need."""


@dataclasses.dataclass(frozen=True)
class BatchMemory:
    """Stored use and shares of groups in the batch system.

    :ivar at: time up to which use is known, seconds of the epoch; 0 if no use
        is known.
    :ivar use: decayed use as parts of the hosts, by account of the share tree.
    :ivar found: original shares in the batch system, before this service set
        any, by batch account.
    :ivar given: last two shares that this service set, by batch account. The
        present share is one of them, unless another program changed it.
    :ivar version: number of writes.
    """

    at: float = 0.0
    use: Mapping[str, float] = dataclasses.field(default_factory=dict)
    found: Mapping[str, int] = dataclasses.field(default_factory=dict)
    given: Mapping[str, tuple[int, ...]] = dataclasses.field(
        default_factory=dict
    )
    version: int = 0


@dataclasses.dataclass(frozen=True)
class BatchUse:
    """Use of the batch system by groups, for the queue.

    :ivar use: decayed use as parts of the hosts, by account of the share tree.
    :ivar lacks: parts of the hosts that groups use now, minus their part that
        ``use`` includes, by account of the share tree.
    :ivar hosts: names of the hosts in Nova.
    """

    use: Mapping[str, float]
    lacks: Mapping[str, float]
    hosts: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class PledgeStanding:
    """Use and shares of a group.

    :ivar group: names of the group.
    :ivar pledge: pledge as a part of the pledges of all groups, 0 to 1.
    :ivar batch: decayed use of the batch system, as a part of the hosts.
    :ivar cloud: decayed use of the cloud, as a part of the hosts.
    :ivar part: part of the use of all groups, 0 to 1; 0 if no group has used
        anything.
    :ivar share: new share of the group in the batch system.
    :ivar found: original share in the batch system, before this service set
        one.
    """

    group: pledge.PledgeGroup
    pledge: float
    batch: float
    cloud: float
    part: float
    share: int
    found: int


def account_by_batch_account(
    groups: Iterable[pledge.PledgeGroup],
    shares: Mapping[str, pledge.BatchShare],
) -> dict[str, str]:
    """Return the account of the share tree for each batch account in a group.

    A batch account that is not listed as a group belongs to the nearest
    account above it that is.

    :param shares: shares of the accounts of the batch system.
    :returns: accounts of the share tree by account of the batch system.
    """
    named = {each.batch: each.account for each in groups}
    found = {}
    for account in shares:
        seen: set[str] = set()
        up = account
        while up not in named and up in shares and up not in seen:
            seen.add(up)
            up = shares[up].parent
        if up in named:
            found[account] = named[up]
    return found


def charge_jobs(
    kept: BatchMemory,
    spent: Iterable[pledge.Spent],
    owner: Mapping[str, str],
    now: float,
    half_life_s: float,
    cores: float,
) -> tuple[BatchMemory, dict[str, float]]:
    """Charge the use of jobs since the last charge.

    The result is exact, independent of the interval between calls: use from
    ``b`` to ``e`` counts ``0.5^((now - e) / h) - 0.5^((now - b) / h)``.

    :param spent: use of jobs that ran since the last charge.
    :param owner: see :func:`account_by_batch_account`.
    :param now: seconds of the epoch.
    :param cores: cores of all hosts, > 0.
    :returns: the new record, and ``lacks`` of :class:`BatchUse`.
    """
    since = min(kept.at or now, now)
    book = ledger_module.UseLedger(half_life_s, since)
    faded = book.kept(now - since)
    use = {name: part * faded for name, part in kept.use.items()}
    lacks: dict[str, float] = {}
    for each in spent:
        if each.account not in owner:
            continue
        name, part = owner[each.account], each.cores / cores
        ends = now if each.end is None else min(each.end, now)
        begins = min(max(each.begin, since), ends)
        counts = book.kept(now - ends) - book.kept(now - begins)
        use[name] = use.get(name, 0.0) + part * counts
        if each.end is None:
            ran_s = max(now - each.begin, 0.0)
            lacks[name] = lacks.get(name, 0.0) + part * book.kept(ran_s)
    use = {
        name: part
        for name, part in sorted(use.items())
        if part >= ledger_module.FORGOTTEN
    }
    at = max(kept.at, now)
    return dataclasses.replace(kept, at=at, use=use), lacks


def capacity_part(
    snapshot: cluster.ClusterSnapshot, hosts: frozenset[str]
) -> Floats:
    """Return the capacity of the hosts as a part of the capacity of the cloud,
    (c,), 0 to 1.

    :param hosts: names of the hosts in Nova.
    """
    rows = [each.name in hosts for each in snapshot.providers]
    capacity = snapshot.inventory.capacity.astype(np.float64)
    return ledger_module.parts_of_capacity(
        capacity[rows].sum(axis=0), capacity.sum(axis=0)
    )


def with_batch_use(
    snapshot: cluster.ClusterSnapshot, beside: BatchUse
) -> cluster.ClusterSnapshot:
    """Return the snapshot of the queue, with the groups' use of the batch
    system added.

    The use counts for the account of a group and all accounts above it.
    """
    of_cloud = capacity_part(snapshot, beside.hosts)
    parents = {each.name: each.parent for each in snapshot.accounts}
    both = []
    for own, more in (
        (snapshot.history, beside.use),
        (snapshot.granted, beside.lacks),
    ):
        total = dict(own)
        for name, part in more.items():
            for up in _with_ancestors(name, parents):
                total[up] = total.get(up, 0.0) + part * of_cloud
        both.append(total)
    return dataclasses.replace(snapshot, history=both[0], granted=both[1])


def _with_ancestors(
    name: str, parents: Mapping[str, str | None]
) -> Iterable[str]:
    up: str | None = name
    while up is not None:
        yield up
        up = parents.get(up)


def of_cloud(
    snapshot: cluster.ClusterSnapshot,
    use: Mapping[str, Floats],
    hosts: frozenset[str],
) -> dict[str, float]:
    """Return the use of the cloud as parts of the hosts, by account.

    The resource class with the largest weighted part counts.

    :param use: (c,) decayed use as parts of the cloud, by account, without the
        batch side.
    """
    of_hosts = capacity_part(snapshot, hosts)
    counts = snapshot.counts * (of_hosts > 0)
    scaled = np.where(of_hosts > 0, of_hosts, 1.0)
    return {
        name: float((parts * counts / scaled).max(initial=0.0))
        for name, parts in use.items()
    }


def adjustment_faults(
    groups: Sequence[pledge.PledgeGroup],
    accounts: Iterable[cluster.Account],
    shares: Mapping[str, pledge.BatchShare],
    kept: BatchMemory,
) -> list[str]:
    """Return the reasons why shares cannot be adjusted, as sentences.

    :param accounts: accounts of the share tree.
    :param shares: shares of the accounts of the batch system.
    """
    named = {each.name: each for each in accounts}
    wrong = [
        f'the share tree has no account {each.account}'
        for each in groups
        if each.account not in named
    ]
    wrong += [
        f'the batch system has no account {each.batch}'
        for each in groups
        if each.batch not in shares
    ]
    if wrong:
        return wrong
    wrong += [
        f'account {each.batch} of the batch system has no share of its own'
        for each in groups
        if shares[each.batch].share < 1
    ]
    total = sum(_original_share(each.batch, shares, kept) for each in groups)
    if total < FINE * len(groups):
        wrong.append(
            f'groups have {total} shares of the batch system together; they'
            f' need {FINE * len(groups)} to be divided finely'
        )
    for of, parents in (
        ('share tree', {named[each.account].parent for each in groups}),
        ('batch system', {shares[each.batch].parent for each in groups}),
    ):
        if len(parents) > 1:
            listed = ', '.join(sorted(str(each) for each in parents))
            wrong.append(
                f'groups must have one account above them in the {of}, and'
                f' have {listed}'
            )
    return wrong


def standings(
    groups: Sequence[pledge.PledgeGroup],
    accounts: Iterable[cluster.Account],
    shares: Mapping[str, pledge.BatchShare],
    kept: BatchMemory,
    cloud: Mapping[str, float],
) -> tuple[PledgeStanding, ...]:
    """Return the use of groups, and their new batch shares.

    :param groups: groups for which :func:`adjustment_faults` returns nothing.
    :param shares: shares of the accounts of the batch system.
    :param cloud: see :func:`of_cloud`.
    """
    tree = tree_module.AccountTree(accounts)
    pledges = tree.share[[tree.place(each.account) for each in groups]]
    pledges = _normalised(pledges)
    batch = np.array([kept.use.get(each.account, 0.0) for each in groups])
    other = np.array([cloud.get(each.account, 0.0) for each in groups])
    found = [_original_share(each.batch, shares, kept) for each in groups]
    wanted = batch_correction.whole_shares(
        batch_correction.adjusted_parts(pledges, batch, other),
        max(sum(found), len(found)),
    )
    part = _normalised(batch + other)
    return tuple(
        PledgeStanding(group, *numbers)
        for group, *numbers in zip(
            groups,
            pledges.tolist(),
            batch.tolist(),
            other.tolist(),
            part.tolist(),
            wanted.tolist(),
            found,
            strict=True,
        )
    )


def _normalised(amounts: Floats) -> Floats:
    total = float(amounts.sum())
    return amounts / total if total > 0 else np.zeros(len(amounts))


def _original_share(
    account: str, shares: Mapping[str, pledge.BatchShare], kept: BatchMemory
) -> int:
    """Return the share that an account had before this service set one.

    If another program changed the share since, the changed share is returned.
    """
    present = shares[account].share
    if account in kept.found and present in kept.given.get(account, ()):
        return kept.found[account]
    return present


def shares_to_set(
    stands: Iterable[PledgeStanding], shares: Mapping[str, pledge.BatchShare]
) -> dict[str, int]:
    """Return the new shares to set, by account of the batch system.

    There are none while the relative error of every share is at most
    :data:`NEAR`. Otherwise all shares that differ are set, so that the sum of
    the shares does not change.
    """
    wanted = {each.group.batch: each.share for each in stands}
    present = {name: shares[name].share for name in wanted}
    if all(
        abs(present[name] - share) <= NEAR * share
        for name, share in wanted.items()
    ):
        return {}
    return {
        name: share for name, share in wanted.items() if present[name] != share
    }


def shares_to_restore(
    groups: Iterable[pledge.PledgeGroup],
    shares: Mapping[str, pledge.BatchShare],
    kept: BatchMemory,
) -> dict[str, int]:
    """Return the original shares of accounts that are in no group now.

    A share that another program changed since is not restored.
    """
    named = {each.batch for each in groups}
    return {
        name: share
        for name, share in sorted(kept.found.items())
        if name not in named
        and name in shares
        and shares[name].share != share
        and shares[name].share in kept.given.get(name, ())
    }


def with_original_shares(
    kept: BatchMemory,
    stands: Sequence[PledgeStanding],
    give: Mapping[str, int],
    shares: Mapping[str, pledge.BatchShare],
) -> BatchMemory:
    """Return the record with the original shares, which is stored before new
    shares are set. After a crash, the next leader uses it.

    :param stands: standings of all present groups. Accounts of former groups
        are removed when their shares are restored.
    :param give: shares to set; see :func:`shares_to_set` and
        :func:`shares_to_restore`.
    """
    owned = {each.group.batch: each.found for each in stands}
    left = {name: kept.found[name] for name in give.keys() - owned.keys()}
    found = {**left, **owned}
    given = {
        name: tuple(
            sorted({shares[name].share, give.get(name, shares[name].share)})
        )
        for name in found
    }
    return dataclasses.replace(kept, found=found, given=given)
