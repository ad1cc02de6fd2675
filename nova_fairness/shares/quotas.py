# SPDX-License-Identifier: Apache-2.0

"""Quotas: amounts that accounts own, lend and borrow, by resource class.

An account has a nominal quota in addition to those of the accounts below it.
The part that it does not lend is kept for it, used or not. It lends the rest
to all accounts, by way of its parent, as long as no account below it asks for
the amounts. Further use below an account comes from its parent, up to its
borrowing limit. At the top are all amounts of the cloud that no account keeps
(Kueue: ``pkg/cache/resource_node.go`` of its scheduler; here the top never
lends more than the cloud has).

Amounts are int64, (c,) by resource class.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.shares import tree as tree_module

Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.intp]

UNLIMITED = np.iinfo(np.int64).max // 2


class ExceededQuota(NamedTuple):
    """A borrowing limit that a start would exceed.

    :ivar account: name of the account.
    :ivar column: column of the class.
    :ivar asked: amount that would be borrowed, including present borrowing.
    :ivar limit: largest amount that the account may borrow.
    """

    account: str
    column: int
    asked: int
    limit: int


class QuotasAfterReturn(NamedTuple):
    """State after amounts were given back.

    :ivar left: (c,) free amounts at the top.
    :ivar use: (a, c) use of accounts, in the order of their tree.
    """

    left: cluster.Amounts
    use: cluster.Amounts


class _TakeableAmounts(NamedTuple):
    """Amounts that a project may still take.

    :ivar owned: (k, c) amounts within the quota of the project's account, and
        of each account above it.
    :ivar most: (c,) amounts within the borrowing limits of all these accounts.
    """

    owned: cluster.Amounts
    most: cluster.Amounts


class Quotas:
    """Amounts that accounts own and may borrow, during a plan.

    :param accounts: of the share tree.
    :param kept: (c,) guaranteed amounts of projects that are never lent, in
        addition to the quotas of their accounts.
    :param used: (c,) amounts that projects use.
    :param supply: (c,) amounts of the cloud.
    :param classes: (c,) names of the resource classes.

    :ivar shared: (c,) amounts that no account keeps, >= 0.
    :ivar left: (c,) free part of ``shared``; below 0 if more is in use.
    :ivar takes: number of times that a project took amounts.
    """

    def __init__(
        self,
        accounts: Iterable[cluster.Account],
        kept: Mapping[str, cluster.Amounts],
        used: Mapping[str, cluster.Amounts],
        supply: cluster.Amounts,
        classes: tuple[str, ...],
    ) -> None:
        given = tuple(accounts)
        given = given if any(each.has_quota for each in given) else ()
        known = {each.name: each for each in given}
        tree = tree_module.completed_tree(given, kept, ())
        self._names = tree.names
        self._row = {name: row for row, name in enumerate(tree.names)}
        self._parent = tree.parent
        self._levels = _rows_by_depth(tree.parent)
        self._paths = _paths(tree.parent)
        unnamed = cluster.Account('')
        listed = [known.get(name, unnamed) for name in tree.names]

        nominal = _amounts_table((each.nominal for each in listed), classes, 0)
        lends = _amounts_table(
            (each.lending_limit for each in listed), classes, UNLIMITED
        )
        self._limit = _amounts_table(
            (each.borrowing_limit for each in listed), classes, UNLIMITED
        )
        # A class in no nominal quota is neither lent nor given back.
        self._named = nominal.any(axis=0)
        self._part = nominal
        self._own = np.zeros_like(nominal)
        for name, amounts in kept.items():
            self._own[self._row[name]] = amounts
        self._compute_lending(lends)
        self.shared: cluster.Amounts = np.maximum(
            supply - self._own.sum(axis=0), 0
        )
        self.left = self.shared.copy()
        self._use = np.zeros_like(nominal)
        self._changes = [0] * len(listed)
        self._reaches: dict[str, tuple[int, _TakeableAmounts]] = {}
        self.takes = 0
        for project in sorted(used):
            self.take(project, used[project])

    @property
    def has_owners(self) -> bool:
        """Whether an account has a nominal quota, which it may lend."""
        return bool(self._named.any())

    def changes(self, project: str) -> int:
        """Counter that increases whenever :meth:`excess` may change."""
        return sum(self._changes[row] for row in self._rows_to_top(project))

    def excess(
        self,
        project: str,
        asked: cluster.Amounts,
        later: QuotasAfterReturn | None = None,
    ) -> cluster.Amounts:
        """(..., c) Amounts that come from the top if a project takes more.

        :param asked: (..., c) amounts that the project takes.
        :param later: state from :meth:`after`; ``None`` for the present state.
        """
        use = self._use if later is None else later.use
        for row in self._rows_to_top(project):
            unused = np.maximum(self._own[row] - use[row], 0)
            asked = np.maximum(asked - unused, 0)
        return asked

    def steps(self, project: str, asked: cluster.Amounts) -> Counts:
        """(n,) Number of steps up to the account that owns asked amounts.

        It is 0 if they are within the quota of the project's own account, and
        1 if they are within that of the account above. If no account owns
        them, it is the number of all accounts. Requests with fewer steps come
        first: their amounts were lent to requests with more steps, or to
        requests for amounts that no account owns.

        :param asked: (n, c) amounts for which different requests ask.
        """
        beyond = np.ones((len(asked), 1), dtype=bool)
        owned = self._takeable_amounts(project).owned
        within = (asked[:, np.newaxis, :] <= owned).all(axis=2)
        steps = np.concatenate([within, beyond], axis=1).argmax(axis=1)
        has_owner = asked[:, self._named].any(axis=1) & (steps < len(owned))
        return np.where(has_owner, steps, len(self._names))

    def owner(self, project: str, asked: cluster.Amounts) -> str | None:
        """The account that owns the asked amounts; ``None`` if none does."""
        [step] = self.steps(project, asked[np.newaxis])
        path = self._rows_to_top(project)
        return self._names[path[step]] if step < len(path) else None

    def within(self, project: str, asked: cluster.Amounts) -> Bools:
        """(n,) Whether requests stay within all borrowing limits.

        :param asked: (n, c) amounts for which different requests ask.
        """
        within: Bools = np.logical_and.reduce(
            asked <= self._takeable_amounts(project).most, axis=1
        )
        return within

    def passed(
        self, project: str, asked: cluster.Amounts
    ) -> ExceededQuota | None:
        """The exceeded borrowing limit of the lowest account, if any."""
        if self.within(project, asked[np.newaxis]).all():
            return None
        for row in self._rows_to_top(project):
            borrowed = self._use[row] + asked - self._part[row]
            over = (asked > 0) & (borrowed > self._limit[row])
            for c in np.flatnonzero(over) if over.any() else ():
                return ExceededQuota(
                    self._names[row],
                    int(c),
                    int(borrowed[c]),
                    int(self._limit[row, c]),
                )
            asked = np.maximum(asked - self._unused_kept(row), 0)
        return None

    def above(
        self, project: str, asked: cluster.Amounts
    ) -> Iterator[tuple[int, str]]:
        """Accounts whose use increases if a project takes more.

        :returns: number of steps up to each account, and its name.
        """
        for step, row in enumerate(self._rows_to_top(project)):
            if not asked.any():
                return
            yield step, self._names[row]
            asked = np.maximum(asked - self._unused_kept(row), 0)

    def take(self, project: str, asked: cluster.Amounts) -> None:
        """Add amounts that a project takes."""
        for row in self._rows_to_top(project):
            beyond = np.maximum(asked - self._unused_kept(row), 0)
            self._use[row] += asked
            self._changes[row] += 1
            asked = beyond
        self.takes += 1
        self.left = self.left - asked

    def after(
        self, returned: Mapping[str, cluster.Amounts]
    ) -> QuotasAfterReturn:
        """State after projects gave amounts back.

        :param returned: (c,) amounts by project, at most those that it has.
        """
        back = np.zeros_like(self._use)
        left, use = self.left.copy(), self._use.copy()
        for project, amounts in returned.items():
            if project in self._row:
                back[self._row[project]] += amounts
            else:
                left += amounts
        for rows in self._levels:
            before = np.maximum(use[rows] - self._own[rows], 0)
            use[rows] -= back[rows]
            freed = before - np.maximum(use[rows] - self._own[rows], 0)
            parents = self._parent[rows]
            top = parents == tree_module.ROOT
            left += freed[top].sum(axis=0)
            np.add.at(back, parents[~top], freed[~top])
        return QuotasAfterReturn(left, use)

    def _compute_lending(self, lends: cluster.Amounts) -> None:
        """Compute the amounts that accounts keep, and those they can use.

        An account can use its own amounts and those lent from below.
        """
        self._part += self._own
        for rows in self._levels:
            free = self._part[rows] - self._own[rows]
            self._own[rows] += np.maximum(free - lends[rows], 0)
            lent = self._part[rows] - self._own[rows]
            parents = self._parent[rows]
            below = parents != tree_module.ROOT
            np.add.at(self._part, parents[below], lent[below])

    def _takeable_amounts(self, project: str) -> _TakeableAmounts:
        """Amounts that a project may still take, cached."""
        changes = self.changes(project)
        known = self._reaches.get(project)
        if known is None or known[0] != changes:
            known = changes, self._compute_takeable(project)
            self._reaches[project] = known
        return known[1]

    def _compute_takeable(self, project: str) -> _TakeableAmounts:
        kept = np.zeros_like(self.shared)
        owned = []
        most = np.full_like(kept, UNLIMITED)
        for row in self._rows_to_top(project):
            free = self._part[row] - self._use[row]
            owned.append(np.maximum(free, 0) + kept)
            lent = np.maximum(free + self._limit[row], 0) + kept
            most = np.minimum(most, lent)
            kept = kept + self._unused_kept(row)
        table = np.array(owned, np.int64).reshape(len(owned), len(kept))
        return _TakeableAmounts(np.where(self._named, table, UNLIMITED), most)

    def _rows_to_top(self, project: str) -> tuple[int, ...]:
        row = self._row.get(project)
        return () if row is None else self._paths[row]

    def _unused_kept(self, row: int) -> cluster.Amounts:
        """(c,) Kept amounts of an account that are not in use."""
        unused: cluster.Amounts = np.maximum(
            self._own[row] - self._use[row], 0
        )
        return unused


_Named = tuple[tuple[str, int], ...]


def _amounts_table(
    amounts: Iterable[_Named], classes: tuple[str, ...], others: int
) -> cluster.Amounts:
    """(a, c) Amounts of accounts; ``others`` for classes without an entry."""
    # Most accounts have no entries.
    usual = [others] * len(classes)
    rows = [
        _amounts_vector(dict(each), classes, others) if each else usual
        for each in amounts
    ]
    return np.array(rows, np.int64).reshape(len(rows), len(classes))


def _amounts_vector(
    amounts: Mapping[str, int], classes: tuple[str, ...], others: int
) -> list[int]:
    return [amounts.get(name, others) for name in classes]


def _paths(parent: tree_module.Places) -> list[tuple[int, ...]]:
    """Rows from each account up to the top."""
    found: list[tuple[int, ...]] = []
    for row, up in enumerate(parent.tolist()):
        found.append((row, *(found[up] if up != tree_module.ROOT else ())))
    return found


def _rows_by_depth(parent: tree_module.Places) -> list[tree_module.Places]:
    """Rows of accounts by depth below the top, the deepest first."""
    depth = np.array([len(each) for each in _paths(parent)], dtype=np.intp)
    return [
        np.flatnonzero(depth == level)
        for level in range(int(depth.max(initial=0)), 0, -1)
    ]
