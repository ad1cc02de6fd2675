# SPDX-License-Identifier: Apache-2.0

"""The share tree: the parts of the cloud that accounts have.

Accounts are domains, projects, groups and users. Each has a share, which
counts relative to the shares of its siblings. Only accounts with wants count:
an account takes nothing from its siblings if no account in its branch wants
anything. So many small accounts do not dilute the others.
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
"""Stands for the row of the parent of accounts without a parent."""

LARGEST_SHARE = 1e9
LONGEST_S = 1e9
LARGEST_BUDGET = 1e12
"""Largest budget, unit-hours, and largest funds."""


class AccountTree:
    """Accounts in an order in which parents come before their children.

    :param accounts: accounts in any order.
    :raises BadShares: see :func:`tree_faults`; the error names all faults.

    :ivar names: (a,) names, parents first, siblings by name.
    :ivar parent: (a,) row of the parent, or :data:`ROOT`.
    :ivar share: (a,) share relative to the siblings, >= 0.
    """

    def __init__(self, accounts: Iterable[cluster.Account]) -> None:
        given = tuple(accounts)
        if wrong := tree_faults(given):
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
        """(a, c) Amounts of all accounts; 0 for accounts without an entry.

        :param amounts: (c,) amounts by name; unknown names are ignored.
        :param width: number of columns.
        """
        rows = np.zeros((len(self), width))
        for name, row in amounts.items():
            if name in self._place:
                rows[self._place[name]] = row
        return rows

    def children(self) -> Mapping[int, Sequence[int]]:
        """Rows of the children of each row; :data:`ROOT` has the top ones."""
        found: dict[int, list[int]] = {ROOT: []}
        for at, up in enumerate(self.parent.tolist()):
            found.setdefault(up, []).append(at)
            found.setdefault(at, [])
        return found

    def summed(self, own: Floats) -> Floats:
        """(a, ...) Sums over each account and all accounts below it.

        :param own: (a, ...) amounts of each account itself.
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
        """(a,) Part of each account of its parent's part, 0 to 1.

        It is 0 for a branch that wants nothing. If all siblings with wants
        have a share of 0, they get equal parts.

        :param wants: (a,) whether each account itself wants something.
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
        """(a,) Part of the cloud, 0 to 1: the product from the top down.

        :param wants: (a,) whether each account itself wants something.
        """
        part = self.among_siblings(wants)
        for at, up in enumerate(self.parent.tolist()):
            if up != ROOT:
                part[at] *= part[up]
        return part


def accounts_hash(accounts: object) -> str:
    """Hash of accounts: different accounts have different hashes.

    :param accounts: a value of JSON types.
    """
    written = json.dumps(accounts, sort_keys=True).encode()
    return hashlib.sha256(written).hexdigest()


def with_missing_accounts(
    accounts: Iterable[cluster.Account],
    projects: Iterable[str],
    users: Iterable[tuple[str, str]],
) -> list[cluster.Account]:
    """Accounts, with missing accounts of projects and users added.

    Added accounts have a share of 1. A project is at the top, and a user is
    below the project.

    :param accounts: known accounts.
    :param projects: projects with use or wants.
    :param users: pairs of a project and a user.
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
    """Return the tree of accounts, with missing accounts added; the last few
    trees are cached. See :func:`with_missing_accounts`.

    :raises BadShares: see :func:`tree_faults`.
    """
    return _build_tree(tuple(with_missing_accounts(accounts, projects, users)))


# A cycle asks for the tree of the same accounts at many places.
@functools.lru_cache(maxsize=4)
def _build_tree(accounts: tuple[cluster.Account, ...]) -> AccountTree:
    return AccountTree(accounts)


def with_replaced_fields(
    accounts: Iterable[cluster.Account],
    given: Mapping[str, Mapping[str, Any]],
) -> tuple[cluster.Account, ...]:
    """Accounts with some fields replaced.

    A missing account is added where :func:`with_missing_accounts` adds it.

    :param given: new values by name of the account and name of the field.
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


def sums_with_below(
    own: Mapping[str, Floats],
    snapshot: cluster.ClusterSnapshot,
    users: Iterable[tuple[str, str]],
) -> dict[str, Floats]:
    """(c,) Sums of amounts over each account and all below it, by name.

    Accounts without amounts are left out.

    :param own: (c,) amounts of each account itself, by name.
    :param snapshot: has the accounts.
    :param users: pairs of a project and a user.
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
    """(c,) Parts of the cloud in preemptible servers, by account.

    An account includes all accounts below it. Accounts without preemptible
    servers are left out.
    """
    capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
    own = {
        request_model.account_of(*owner): ledger.parts_of_capacity(
            amounts.astype(np.float64), capacity
        )
        for owner, amounts in snapshot.preemptible.items()
    }
    return sums_with_below(own, snapshot, snapshot.preemptible)


def below(
    accounts: Iterable[cluster.Account], name: str | None
) -> frozenset[str]:
    """Names of an account and all below it; all names for ``None``."""
    tree = AccountTree(accounts)
    if name is None:
        return frozenset(tree.names)
    found: set[str] = set()
    for at, each in enumerate(tree.names):
        up = int(tree.parent[at])
        if each == name or (up != ROOT and tree.names[up] in found):
            found.add(each)
    return frozenset(found)


def account_chain(
    accounts: Mapping[str, cluster.Account], project: str, user: str
) -> list[cluster.Account]:
    """The accounts of a user from the lowest up to the top.

    :param accounts: accounts of a tree, by name; those of the user or the
        project may be missing if they have no settings of their own.
    """
    name = request_model.account_of(project, user)
    found = []
    up: str | None = name if name in accounts else project
    while up is not None and up in accounts:
        found.append(accounts[up])
        up = accounts[up].parent
    return found


class AccountsWithSetting:
    """Accounts of users, and above them, that have a certain setting.

    :param accounts: of a tree.
    :param has: returns whether an account has the setting.
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
        """Accounts with the setting, from a user's account up."""
        if (project, user) not in self._known:
            self._known[project, user] = tuple(
                each
                for each in account_chain(self._by_name, project, user)
                if each.name in self._having
            )
        return self._known[project, user]


def _over_siblings(amount: Floats, parent: Places) -> Floats:
    """(a,) Sum of an amount over an account and its siblings."""
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
    """A fault of an account.

    :ivar account: name of the account.
    :ivar what: text of the fault, with the name.
    """

    account: str
    what: str


def tree_faults(accounts: Sequence[cluster.Account]) -> list[TreeFault]:
    """All faults of accounts.

    These are: a name occurs twice; a parent is unknown; parents form a circle;
    a share is not a number from 0 to :data:`LARGEST_SHARE`; a time is not a
    number above 0 and at most :data:`LONGEST_S`; a budget or funds are not a
    number from 0 to :data:`LARGEST_BUDGET`; a user has a quota.
    """
    by_name = {each.name: each for each in accounts}
    wrong = [
        TreeFault(each.name, what)
        for each in accounts
        for what in (*_number_faults(each), *_place_faults(each, by_name))
    ]
    return [*_duplicates(accounts), *wrong] or _circle_faults(by_name)


def _duplicates(accounts: Sequence[cluster.Account]) -> list[TreeFault]:
    seen: set[str] = set()
    twice: set[str] = set()
    for each in accounts:
        (twice if each.name in seen else seen).add(each.name)
    return [
        TreeFault(name, f'account {name!r} comes twice')
        for name in sorted(twice)
    ]


def _number_faults(each: cluster.Account) -> Iterator[str]:
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


def _place_faults(
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


def _circle_faults(by_name: Mapping[str, cluster.Account]) -> list[TreeFault]:
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
