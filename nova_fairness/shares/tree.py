# SPDX-License-Identifier: Apache-2.0

"""The share tree: the parts of the cloud that accounts have.

Accounts are domains, projects, groups and users; each has a share, which
counts beside those of its siblings. Shares count among accounts that want
something: an account whose whole branch wants nothing takes nothing from its
siblings, so that many small accounts dilute no other.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import hashlib
import json
from typing import Any
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.shares import ledger

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

ROOT = -1
"""Place of the parent of those that have none."""

LARGEST_SHARE = 1e9
LONGEST_S = 1e9
LARGEST_BUDGET = 1e12
"""Unit-hours."""


class AccountTree:
    """Accounts in an order in which parents come before their children.

    :param accounts: in any order.
    :raises BadShares: see :func:`faults`; all that is wrong is named.

    :ivar names: (a,) parents first, siblings by name.
    :ivar parent: (a,) place of the parent, or :data:`ROOT`.
    :ivar share: (a,) beside its siblings, >= 0.
    """

    def __init__(self, accounts: Iterable[cluster.Account]) -> None:
        given = tuple(accounts)
        if wrong := faults(given):
            raise exception.BadShares('; '.join(each.what for each in wrong))
        by_name = {each.name: each for each in given}
        self.names = tuple(_parents_first(given))
        self._place = {name: at for at, name in enumerate(self.names)}
        parents = [by_name[name].parent for name in self.names]
        self.parent: Places = np.array(
            [ROOT if up is None else self._place[up] for up in parents],
            dtype=np.intp,
        )
        self.share: Floats = np.array(
            [by_name[name].share for name in self.names], dtype=np.float64
        )

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """The row of an account; ``KeyError`` if it is not in the tree."""
        return self._place[name]

    def table(self, amounts: Mapping[str, Floats], width: int) -> Floats:
        """Amounts of all accounts, (a, c); 0 for those not named.

        :param amounts: (c,) by name; those of no account do not count.
        :param width: number of columns.
        """
        rows = np.zeros((len(self), width))
        for name, row in amounts.items():
            if name in self._place:
                rows[self._place[name]] = row
        return rows

    def children(self) -> Mapping[int, Sequence[int]]:
        """Places of the children, by place; :data:`ROOT` has the top."""
        found: dict[int, list[int]] = {ROOT: []}
        for at, up in enumerate(self.parent.tolist()):
            found.setdefault(up, []).append(at)
            found.setdefault(at, [])
        return found

    def summed(self, own: Floats) -> Floats:
        """Sums of accounts with all accounts below them, (a, ...).

        :param own: (a, ...) amounts of each itself.
        """
        total = own.copy()
        for at in range(len(self) - 1, -1, -1):
            up = self.parent[at]
            if up != ROOT:
                total[up] += total[at]
        return total

    def share_of_siblings(self) -> Floats:
        """Sum of the shares of an account and all of its siblings, (a,)."""
        return _over_siblings(self.share, self.parent)

    def among_siblings(self, wants: Bools) -> Floats:
        """Part of its parent's part, (a,), 0 to 1; 0 if it wants nothing.

        Siblings that want and have no share between them divide by number:
        there is no other to take it.

        :param wants: (a,) who wants something itself.
        """
        active = self.summed(wants.astype(np.float64)) > 0
        share = np.where(active, self.share, 0.0)
        among = _over_siblings(share, self.parent)
        alone = active & (among == 0)
        share = np.where(alone, 1.0, share)
        among = _over_siblings(share, self.parent)
        return np.divide(
            share, among, out=np.zeros(len(self)), where=among > 0
        )

    def part(self, wants: Bools) -> Floats:
        """Part of the cloud, (a,), 0 to 1: the product from the top down.

        :param wants: (a,) who wants something itself.
        """
        part = self.among_siblings(wants)
        for at, up in enumerate(self.parent.tolist()):
            if up != ROOT:
                part[at] *= part[up]
        return part


def version(accounts: object) -> str:
    """Word that is another one for other accounts.

    :param accounts: of JSON types.
    """
    written = json.dumps(accounts, sort_keys=True).encode()
    return hashlib.sha256(written).hexdigest()


def completed(
    accounts: Iterable[cluster.Account],
    projects: Iterable[str],
    users: Iterable[tuple[str, str]],
) -> list[cluster.Account]:
    """Accounts with those of projects and users that are not among them.

    They have a share of 1: a project at the top, a user below the project.

    :param accounts: that are named.
    :param projects: that have or want something.
    :param users: with their projects, first the project.
    """
    found = {each.name: each for each in accounts}
    pairs = set(users)
    named = {*projects, *(project for project, _ in pairs)}
    for project in sorted(named - found.keys()):
        found[project] = cluster.Account(project)
    of_users = {request_model.account_of(*each): each[0] for each in pairs}
    for name in sorted(of_users.keys() - found.keys()):
        found[name] = cluster.Account(name, of_users[name])
    return list(found.values())


def completed_tree(
    accounts: Iterable[cluster.Account],
    projects: Iterable[str],
    users: Iterable[tuple[str, str]],
) -> AccountTree:
    """The tree of :func:`completed` accounts; the last few are kept.

    :raises BadShares: see :func:`faults`.
    """
    return _tree(tuple(completed(accounts, projects, users)))


# A cycle asks for the tree of the same accounts at many places.
@functools.lru_cache(maxsize=4)
def _tree(accounts: tuple[cluster.Account, ...]) -> AccountTree:
    return AccountTree(accounts)


def overlaid(
    accounts: Iterable[cluster.Account],
    given: Mapping[str, Mapping[str, Any]],
) -> tuple[cluster.Account, ...]:
    """Accounts with some fields replaced.

    One that is not among them stands where :func:`completed` would place it.

    :param given: by name of the account and of its field.
    """
    by_name = {each.name: each for each in accounts}
    for name in sorted(given):
        project, slash, _ = name.partition('/')
        if slash:
            by_name.setdefault(project, cluster.Account(project))
        usual = cluster.Account(name, project if slash else None)
        by_name[name] = dataclasses.replace(
            by_name.get(name, usual), **given[name]
        )
    return tuple(by_name.values())


def with_below(
    own: Mapping[str, Floats],
    snapshot: cluster.ClusterSnapshot,
    users: Iterable[tuple[str, str]],
) -> dict[str, Floats]:
    """Amounts of accounts with those of all below, (c,), if there are any.

    :param own: (c,) what each has itself, by name.
    :param snapshot: says which accounts there are.
    :param users: with their projects, first the project.
    """
    projects = snapshot.used.keys() - {''}
    tree = completed_tree(snapshot.accounts, projects, users)
    total = tree.summed(tree.table(own, len(snapshot.classes)))
    return {
        tree.names[at]: total[at] for at in np.flatnonzero(total.any(axis=1))
    }


def preemptible_parts(
    snapshot: cluster.ClusterSnapshot,
) -> dict[str, Floats]:
    """Parts of the cloud that accounts have in preemptible servers, (c,).

    :returns: with all below, by name; those without any are left out.
    """
    capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
    own = {
        request_model.account_of(*owner): ledger.parts(
            amounts.astype(np.float64), capacity
        )
        for owner, amounts in snapshot.preemptible.items()
    }
    return with_below(own, snapshot, snapshot.preemptible)


def below(
    accounts: Iterable[cluster.Account], name: str | None
) -> frozenset[str]:
    """Names of an account and all below it; ``None`` for everybody."""
    tree = AccountTree(accounts)
    if name is None:
        return frozenset(tree.names)
    found: set[str] = set()
    for at, each in enumerate(tree.names):
        up = int(tree.parent[at])
        if each == name or (up != ROOT and tree.names[up] in found):
            found.add(each)
    return frozenset(found)


def chain(
    accounts: Mapping[str, cluster.Account], project: str, user: str
) -> list[cluster.Account]:
    """The accounts of a user from the lowest up to the top.

    :param accounts: of a tree, by name; those of the user or the project may
        be missing, as they have nothing of their own then.
    """
    name = request_model.account_of(project, user)
    found = []
    up: str | None = name if name in accounts else project
    while up is not None and up in accounts:
        found.append(accounts[up])
        up = accounts[up].parent
    return found


class Above:
    """Accounts above users that have something of their own.

    :param accounts: of a tree.
    :param has: says whether an account has it.
    """

    def __init__(
        self,
        accounts: Iterable[cluster.Account],
        has: Callable[[cluster.Account], bool],
    ) -> None:
        by_name = {each.name: each for each in accounts}
        self._having = {
            name for name, account in by_name.items() if has(account)
        }
        self._by_name = by_name if self._having else {}
        self._known: dict[tuple[str, str], tuple[cluster.Account, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._having)

    def of(self, project: str, user: str) -> tuple[cluster.Account, ...]:
        """Those above a user, the lowest first."""
        if (project, user) not in self._known:
            self._known[project, user] = tuple(
                each
                for each in chain(self._by_name, project, user)
                if each.name in self._having
            )
        return self._known[project, user]


def _over_siblings(amount: Floats, parent: Places) -> Floats:
    """Sum of an amount over an account and its siblings, (a,)."""
    total = np.zeros(len(amount) + 1)
    np.add.at(total, parent, amount)
    siblings: Floats = total[parent]
    return siblings


def _parents_first(accounts: Sequence[cluster.Account]) -> list[str]:
    below: dict[str | None, list[str]] = {}
    for each in sorted(accounts, key=lambda each: each.name):
        below.setdefault(each.parent, []).append(each.name)
    names, at = list(below.get(None, [])), 0
    while at < len(names):
        names += below.get(names[at], [])
        at += 1
    return names


class TreeFault(NamedTuple):
    """Something wrong with an account.

    :ivar account: its name.
    :ivar what: in words, with the name.
    """

    account: str
    what: str


def faults(accounts: Sequence[cluster.Account]) -> list[TreeFault]:
    """All that is wrong with accounts.

    A name comes twice, a parent is unknown, parents form a circle, a share is
    no number from 0 to :data:`LARGEST_SHARE`, a time none above 0 to
    :data:`LONGEST_S`, a budget or funds none from 0 to
    :data:`LARGEST_BUDGET`, or a user owns, borrows or lends something.
    """
    by_name = {each.name: each for each in accounts}
    wrong = [
        TreeFault(each.name, what)
        for each in accounts
        for what in (*_bad_numbers(each), *_bad_place(each, by_name))
    ]
    return [*_twice(accounts), *wrong] or _circles(by_name)


def _twice(accounts: Sequence[cluster.Account]) -> list[TreeFault]:
    seen: set[str] = set()
    twice: set[str] = set()
    for each in accounts:
        (twice if each.name in seen else seen).add(each.name)
    return [
        TreeFault(name, f'account {name!r} comes twice')
        for name in sorted(twice)
    ]


def _bad_numbers(each: cluster.Account) -> Iterator[str]:
    if not 0 <= each.share <= LARGEST_SHARE:
        yield (
            f'share of account {each.name!r} must be a number from 0 to'
            f' {LARGEST_SHARE:g}, got {each.share!r}'
        )
    for what, seconds in (
        ('time limit', each.time_limit_s),
        ('longest wait', each.longest_wait_s),
    ):
        if seconds is not None and not 0 < seconds <= LONGEST_S:
            yield (
                f'{what} of account {each.name!r} must be more than 0 and at'
                f' most {LONGEST_S:g} s, got {seconds!r}'
            )
    hours = each.budget_hours
    if hours is not None and not 0 <= hours <= LARGEST_BUDGET:
        yield (
            f'budget of account {each.name!r} must be a number of unit-hours'
            f' from 0 to {LARGEST_BUDGET:g}, got {hours!r}'
        )
    if each.funds is not None and not 0 <= each.funds <= LARGEST_BUDGET:
        yield (
            f'funds of account {each.name!r} must be a number from 0 to'
            f' {LARGEST_BUDGET:g}, got {each.funds!r}'
        )


def _bad_place(
    each: cluster.Account, by_name: Mapping[str, cluster.Account]
) -> Iterator[str]:
    if each.parent is not None and each.parent not in by_name:
        yield (
            f'parent {each.parent!r} of account {each.name!r} is not in the'
            ' tree'
        )
    if '/' in each.name and each.has_quota:
        yield (
            f'account {each.name!r} is that of a user, who has no nominal,'
            ' borrowing_limit or lending_limit; give them a ceiling, or'
            ' quotas to the project'
        )


def _circles(by_name: Mapping[str, cluster.Account]) -> list[TreeFault]:
    sound: set[str] = set()
    for name in sorted(by_name):
        path: list[str] = []
        up: str | None = name
        while up is not None and up not in sound:
            if up in path:
                circle = ' > '.join([*path[path.index(up) :], up])
                return [TreeFault(up, f'accounts form a circle: {circle}')]
            path.append(up)
            up = by_name[up].parent
        sound.update(path)
    return []
