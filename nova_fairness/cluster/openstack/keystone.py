# SPDX-License-Identifier: Apache-2.0

"""The share tree of Keystone: domains, and the projects below them.

Keystone is read at intervals. If Keystone does not answer, or a new answer is
not a valid tree, the last valid answer is used. A deleted project stays in the
tree for as long as the ledger has use of it.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any
import urllib.parse

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients
from nova_fairness.model import cluster
from nova_fairness.shares import tree

LOG = logging.getLogger(__name__)

EVERY_S = 60.0
"""Seconds between two queries of Keystone."""

_NO_IDS = frozenset({'', '.', '..'})
"""IDs that would change the path of a URL."""

VANISHED = (
    'account %s no longer exists in Keystone; the ledger retains its use'
)
STAYS = 'the share tree is not updated: %s'


class Keystone:
    """Client that reads projects and domains of Keystone.

    :param api: API of Keystone, with the rights of an administrator.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api

    def accounts(self) -> dict[str, cluster.Account]:
        """Return domains and projects as accounts, by ID.

        :raises CloudError: if they cannot be read.
        """
        with clients.parsing('the list of projects of Keystone'):
            found = {
                each['id']: cluster.Account(each['id'])
                for each in self._read_list('domains')
            }
            for each in self._read_list('projects'):
                parent = each['parent_id'] or each['domain_id']
                found[each['id']] = cluster.Account(each['id'], parent)
            return found

    def account_exists(self, account: str) -> bool:
        """Return whether an account is a project, or a user of a project.

        A federated user gets roles through groups that Keystone does not list.
        For such a user it is enough that the user exists.

        :param account: ID of a project, or IDs as ``PROJECT/USER``.
        :raises CloudError: if Keystone does not answer.
        """
        project, slash, user = account.partition('/')
        found = self._read_object('project', project)
        if found is None or found.get('is_domain'):
            return False
        return not slash or self._user_may_use_project(user, project)

    def _user_may_use_project(self, user: str, project: str) -> bool:
        """Return whether a user exists, and has a role in a project or is
        federated.
        """
        found = self._read_object('user', user)
        if found is None:
            return False
        query = urllib.parse.urlencode(
            {'user.id': user, 'scope.project.id': project}
        )
        told = self._api.get(f'/role_assignments?effective&{query}') or {}
        return bool(found.get('federated') or told.get('role_assignments'))

    def _read_object(self, noun: str, uuid: str) -> Mapping[str, Any] | None:
        """Return the object with exactly this ID; databases of Keystone may
        ignore case.
        """
        if uuid in _NO_IDS:
            return None
        told = self._api.get(f'/{noun}s/{urllib.parse.quote(uuid, safe="")}')
        if told is None:
            return None
        with clients.parsing(f'the {noun} of Keystone'):
            found: Mapping[str, Any] = told[noun]
            return found if found['id'] == uuid else None

    def _read_list(self, plural: str) -> list[Mapping[str, Any]]:
        """Return all objects of one kind, such as ``projects``."""
        told = self._api.get(f'/{plural}')
        if told is None:
            raise exception.CloudAway(
                f'Keystone answers 404 to its list of {plural}'
            )
        if told.get('truncated'):
            raise exception.CloudAway(
                f'Keystone lists only {len(told[plural])} of its {plural}: its'
                ' list_limit is too low; raise list_limit in Keystone'
            )
        listed: list[Mapping[str, Any]] = told[plural]
        return listed


class AccountMirror:
    """Accounts of Keystone, combined with settings from a file.

    :param keystone: client of Keystone.
    :param read_file: returns the accounts of the file.
    :param ledger_accounts: returns names of accounts that the ledger has.
    :param monotonic: returns seconds that never go back.
    """

    def __init__(
        self,
        keystone: Keystone,
        read_file: Callable[[], tuple[cluster.Account, ...]],
        ledger_accounts: Callable[[], Collection[str]],
        monotonic: Callable[[], float],
    ) -> None:
        self._keystone = keystone
        self._written = read_file
        self._used = ledger_accounts
        self._monotonic = monotonic
        self._asked_s: float | None = None
        self._known: dict[str, cluster.Account] = {}
        self._merged: tuple[
            dict[str, cluster.Account],
            tuple[cluster.Account, ...],
            tuple[cluster.Account, ...],
        ] = ({}, (), ())
        self._complained = ''

    def accounts(self) -> tuple[cluster.Account, ...]:
        """Return the accounts of the share tree.

        :raises CloudError: if Keystone has never answered.
        """
        self._refresh()
        written = self._written()
        known, file, last = self._merged
        if known is self._known and file is written:
            return last
        merged = _merge_accounts(self._known, written)
        if wrong := tree.tree_faults(merged):
            self._log_fault_once(wrong[0].what)
            merged = last
        else:
            self._complained = ''
        self._merged = self._known, written, merged
        return merged

    def _refresh(self) -> None:
        """Read the accounts from Keystone again, if the last read is old."""
        now_s = self._monotonic()
        if self._asked_s is not None and now_s - self._asked_s < EVERY_S:
            return
        try:
            found = self._keystone.accounts()
        except exception.CloudError as error:
            if self._asked_s is None:
                raise
            self._log_fault_once(str(error))
        else:
            self._complained = ''
            found |= self._vanished_accounts(found)
            if found != self._known:
                self._known = found
        self._asked_s = now_s

    def _vanished_accounts(
        self, found: Mapping[str, cluster.Account]
    ) -> dict[str, cluster.Account]:
        """Return accounts that the ledger has and Keystone no longer has."""
        named = {each.name for each in self._written()}
        gone = {}
        for name in sorted(self._used()):
            if '/' in name or name in found or name in named:
                continue
            before = self._known.get(name)
            parent = before.parent if before else None
            gone[name] = cluster.Account(
                name, parent if parent in found else None, vanished=True
            )
            if before is None or not before.vanished:
                LOG.info(VANISHED, name)
        return gone

    def _log_fault_once(self, fault: str) -> None:
        """Log why the share tree is not updated, unless it was logged
        before.
        """
        if fault != self._complained:
            LOG.error(STAYS, fault)
        self._complained = fault


def _merge_accounts(
    from_keystone: Mapping[str, cluster.Account],
    from_file: Iterable[cluster.Account],
) -> tuple[cluster.Account, ...]:
    """Return accounts of Keystone, replaced by accounts of the file with the
    same name.

    An account of the file without a parent gets its parent from Keystone.
    """
    found = dict(from_keystone)
    for each in from_file:
        place = from_keystone.get(each.name)
        if place is not None and each.parent is None:
            found[each.name] = dataclasses.replace(each, parent=place.parent)
        else:
            found[each.name] = each
    return tuple(found.values())
