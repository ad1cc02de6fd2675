# SPDX-License-Identifier: Apache-2.0

"""Accounts as they are now: those of the file, and what was set meanwhile."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster import account_forms
from nova_fairness.cluster import share_file
from nova_fairness.cluster.casts import times as times_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.shares import tree as tree_module

EVERY = 'all that were set'
"""Stands for accounts whose names cannot be read."""


class Accounts:
    """The share tree of this moment.

    :param store: of what was set.
    :param written: says what the file has.
    """

    def __init__(
        self,
        store: store_module.Store,
        written: Callable[[], tuple[cluster.Account, ...]] = tuple,
    ) -> None:
        self._store = store
        self._written = written
        self._unreadable: dict[str, Exception] = {}
        self._last: Mapping[str, Mapping[str, Any]] = {}

    def present(self) -> tuple[cluster.Account, ...]:
        """All that are named.

        Of an account of which it cannot be read what was set the file counts;
        nothing of it starts: see :meth:`unreadable`.

        :raises StoreError: if it cannot be read what was set.
        """
        found: dict[str, dict[str, Any]] = {}
        unreadable: dict[str, Exception] = {}
        for name, own in self._given(unreadable).items():
            try:
                found |= _typed({name: own})
            except Exception as error:  # noqa: BLE001 - others are read
                unreadable[name] = error
        self._unreadable = unreadable
        return tree_module.overlaid(self._written(), found)

    def _given(
        self, unreadable: dict[str, Exception]
    ) -> Mapping[str, Mapping[str, Any]]:
        """What was set; as it was known last if the row cannot be read."""
        try:
            self._last = dict(self._store.given().accounts)
        except exception.StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the file's shares count
            unreadable[EVERY] = error
        return self._last

    def unreadable(self) -> Mapping[str, Exception]:
        """Accounts of which it could not be read last what was set."""
        return self._unreadable

    def times(self, longest_wait_s: float | None) -> times_module.Granted:
        """How long users may wait and run, by all accounts above them.

        :param longest_wait_s: of everybody.
        :raises StoreError: if it cannot be read what was set.
        """
        by_name = {each.name: each for each in self.present()}

        def granted(project: str, user: str) -> times_module.Times:
            found = times_module.Times(None, longest_wait_s)
            for each in tree_module.chain(by_name, project, user):
                own = times_module.Times(
                    each.time_limit_s, each.longest_wait_s
                )
                found = found.at_most(own)
            return found

        return granted

    def change(self, name: str, values: Mapping[str, Any], epoch: int) -> None:
        """Set fields of an account; they count from the next cycle on.

        :param name: of the account.
        :param values: by field of :class:`.cluster.Account`, in the form of
            :mod:`.account_forms`; ``None`` for what the file says.
        :param epoch: of the leader.
        :raises BadShares: if one is none, or too many are set.
        :raises UnknownAccount: if none was set that could be taken back.
        :raises StoreError: if it cannot be done now.
        """
        before = self._store.given()
        own = dict(before.accounts.get(name, {}))
        if not any(
            value is not None or field in own
            for field, value in values.items()
        ):
            raise exception.UnknownAccount(
                f'nothing of account {name} was set that is taken back'
            )
        own = {
            field: value
            for field, value in {**own, **values}.items()
            if value is not None
        }
        accounts = {**before.accounts, name: own}
        if not own:
            del accounts[name]
        tree_module.Tree(tree_module.overlaid((), _typed(accounts)))
        if len(accounts) > share_file.MOST:
            raise exception.BadShares(
                f'{share_file.MOST} accounts can be set, and are'
            )
        self._store.give(records.Given(accounts, before.version), epoch)


def _typed(
    accounts: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """What was set, by name of the account and of its field.

    :raises BadShares: if something is none.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, own in accounts.items():
        found[name] = {}
        for field, value in own.items():
            try:
                found[name][field] = account_forms.typed(field, value)
            except ValueError as error:
                raise exception.BadShares(
                    f'{field} of account {name!r}: {error}'
                ) from None
    return found
