# SPDX-License-Identifier: Apache-2.0

"""Accounts of the share tree: those of the shares file, with the settings
that API calls changed.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.accounts import fields
from nova_fairness.cluster.messages import times as times_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import wording
from nova_fairness.shares import tree as tree_module

EVERY = 'all that were set'
"""Name that represents all accounts in quarantine if no setting can be
read.
"""

LOG = logging.getLogger(__name__)

SET_ASIDE = (
    'account %s: a setting cannot be used, nothing below it starts:'
    ' %s; set it again'
)

UNCHECKED = (
    'account %s: nothing was set: Keystone was not asked whether it exists: %s'
)

_Fields = dict[str, dict[str, Any]]
_Settings = Mapping[str, Mapping[str, Any]]
_LONGEST = 500

MOST = 1000
"""Largest number of users of one project that may have settings."""


class Accounts:
    """Share tree of the cloud: accounts of the shares file, overlaid with
    stored settings.

    Settings are checked at each read, by the same code as when they were
    stored. An account with an invalid setting is quarantined; other accounts
    are not affected.

    :param store: store that contains the settings.
    :param written: returns the accounts of the shares file.
    :param most: largest number of users of one project that may have settings.
    :param exists: asks Keystone whether a project, or a user of a project,
        exists; raises CloudError.
    """

    def __init__(
        self,
        store: store_module.Store,
        written: Callable[[], tuple[cluster.Account, ...]] = tuple,
        most: int = MOST,
        exists: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._exists = exists
        self._store = store
        self._written = written
        self._unreadable: dict[str, Exception] = {}
        self._last: Mapping[str, Mapping[str, Any]] = {}
        self._most = most
        self._known: tuple[Mapping[str, Mapping[str, Any]], _Fields] = ({}, {})

    @property
    def set_aside(self) -> dict[str, str]:
        """Return the errors of invalid settings, by name of the account."""
        return {
            name: str(own['fault'])
            for name, own in self._known[1].items()
            if own.get('fault')
        }

    def present(self) -> tuple[cluster.Account, ...]:
        """Return all accounts that have a share or a setting.

        If the settings of an account cannot be read, its values from the
        shares file are used, and none of its requests starts: see
        :meth:`unreadable`.

        :raises StoreError: if the store does not answer.
        """
        return tree_module.with_replaced_fields(
            self._written(), self._parse_settings(self._stored_settings())
        )

    def _stored_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the stored settings of accounts; the last readable
        settings if rows cannot be read.
        """
        self._unreadable = {}
        try:
            self._last = dict(self._store.account_settings().accounts)
        except exception.StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the file's shares count
            self._unreadable = {EVERY: error}
        return self._last

    def unreadable(self) -> Mapping[str, Exception]:
        """Return the errors of the last read of settings, by name of the
        account.
        """
        return self._unreadable

    def _parse_settings(
        self, given: Mapping[str, Mapping[str, Any]]
    ) -> _Fields:
        """Return the settings of each account as typed fields; log the
        errors of invalid settings.
        """
        before, known = self._known
        if given != before:
            known = {
                name: _usable_fields(name, own) for name, own in given.items()
            }
            old, self._known = self.set_aside, (given, known)
            for name, why in self.set_aside.items():
                if old.get(name) != why:
                    LOG.error(SET_ASIDE, name, why)
        return known

    def times(self, longest_wait_s: float | None) -> times_module.Granted:
        """Return a function that returns the limits of waits and run times of
        a user.

        The limits of all accounts above the user apply.

        :param longest_wait_s: limit of the waits of all users, seconds;
            ``None`` for no limit.
        :raises StoreError: if settings cannot be read.
        """
        by_name = {each.name: each for each in self.present()}

        def granted(project: str, user: str) -> times_module.RequestLimits:
            found = times_module.RequestLimits(None, longest_wait_s)
            for each in tree_module.account_chain(by_name, project, user):
                own = times_module.RequestLimits(
                    each.time_limit_s, each.longest_wait_s
                )
                found = found.shorter_of_both(own)
            return found

        return granted

    def require(self, name: str, values: Mapping[str, Any]) -> None:
        """Check that the fields of an account may be set.

        Settings of any account may be unset, also those of a deleted account.

        :param values: values in the form that :meth:`change` accepts.
        :raises UnknownAccount: if the account does not exist.
        :raises AccountUnchecked: if Keystone does not answer.
        :raises StoreError: if the ledger cannot be read.
        """
        if not any(value is not None for value in values.values()):
            return
        try:
            if (
                name in {each.name for each in self._written()}
                or name in self._store.read_ledger().parts
                or self._exists(name)
            ):
                return
        except exception.CloudError as error:
            LOG.warning(UNCHECKED, name, error)
            raise exception.AccountUnchecked(
                f'account {name}: nothing was set: Keystone cannot be asked'
                ' whether it exists; try again'
            ) from error
        raise exception.UnknownAccount(
            f'account {name}: nothing was set: it is no project, no user with'
            ' a role in one and no account of the file of shares; give a'
            ' project, a user as PROJECT/USER, or an account of that file'
        )

    def change(self, name: str, values: Mapping[str, Any], epoch: int) -> None:
        """Store fields of an account; they apply from the next cycle on.

        :param name: name of the account.
        :param values: values by field of :class:`.cluster.Account`, in the
            form of :mod:`.fields`; ``None`` returns to the value of the file.
        :param epoch: epoch of the leader.
        :raises BadShares: if a value is not valid.
        :raises IllegalStep: if too many users of the project have settings.
        :raises UnknownAccount: if a field is to be unset that is not set.
        :raises StoreError: if the settings cannot be stored now.
        """
        before, accounts = self._with_changed_settings(name, values)
        self._store.set_account_settings(
            records.AccountSettings(accounts, before.version), epoch
        )

    def tried(
        self, name: str, values: Mapping[str, Any]
    ) -> tuple[tuple[cluster.Account, ...], tuple[cluster.Account, ...]]:
        """Return all accounts without a change, and all accounts with it.

        Nothing is stored. Parameters and errors: :meth:`change`.
        """
        before, accounts = self._with_changed_settings(name, values)
        return self._overlaid_accounts(
            before.accounts
        ), self._overlaid_accounts(accounts)

    def _overlaid_accounts(
        self, given: Mapping[str, Mapping[str, Any]]
    ) -> tuple[cluster.Account, ...]:
        usable = {
            name: _usable_fields(name, own) for name, own in given.items()
        }
        return tree_module.with_replaced_fields(self._written(), usable)

    def _with_changed_settings(
        self, name: str, values: Mapping[str, Any]
    ) -> tuple[records.AccountSettings, _Settings]:
        """Return the stored settings, and a copy of all settings with a
        change.
        """
        before = self._store.account_settings()
        stored = before.accounts.get(name)
        # A stored value that is no object is replaced.
        own = dict(stored) if isinstance(stored, Mapping) else {}
        if not any(
            value is not None or field in own
            for field, value in values.items()
        ):
            raise exception.UnknownAccount(
                f'account {name} has no such setting to unset'
            )
        own = {
            field: value
            for field, value in {**own, **values}.items()
            if value is not None
        }
        accounts = {**before.accounts, name: own}
        if not own:
            del accounts[name]
        elif fault := _usable_fields(name, own).get('fault'):
            raise exception.BadShares(fault)
        if name not in before.accounts:
            self._check_user_count(name, before.accounts)
        return before, accounts

    def _check_user_count(self, name: str, others: Iterable[str]) -> None:
        project, slash, _ = name.partition('/')
        there = sum(each.startswith(f'{project}/') for each in others)
        if slash and there >= self._most:
            raise exception.IllegalStep(
                f'project {project}: limits or shares are set for'
                f' {wording.counted(there, "user")}, which is the most; unset'
                ' those of others first'
            )


def _usable_fields(name: str, own: object) -> dict[str, Any]:
    """Return the valid settings of an account as typed fields. The field
    ``fault`` contains the errors of the invalid settings.

    :param own: stored settings: values in the form of :mod:`.fields`, of any
        type.
    """
    found: dict[str, Any] = {}
    wrong: list[str] = []
    if not isinstance(own, Mapping):
        return {'fault': f'settings of account {name!r} must be an object'}
    for field, value in own.items():
        try:
            typed = fields.parse_value(field, value)
            _check_field(name, field, typed)
        except ValueError as error:
            wrong.append(f'{field} of account {name!r}: {error}')
        except exception.BadShares as error:
            wrong.append(str(error))
        else:
            found[field] = typed
    if wrong:
        found['fault'] = '; '.join(wrong)[:_LONGEST]
    return found


def _check_field(name: str, field: str, value: Any) -> None:
    """Check that the share tree accepts the value of a field of an account.

    :raises BadShares: if the share tree rejects the value.
    """
    one = tree_module.with_replaced_fields((), {name: {field: value}})
    if wrong := tree_module.tree_faults(one):
        raise exception.BadShares('; '.join(each.what for each in wrong))
