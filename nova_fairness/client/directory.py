# SPDX-License-Identifier: Apache-2.0

"""Look-up of names and IDs of servers, users and projects."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import re
from typing import Any
import uuid

from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions
import requests

from nova_fairness.model import plain

_ID = re.compile('[0-9a-f]{32}|[0-9a-f-]{36}|me')
"""IDs in the forms of Keystone, or ``me``: the owner of the token."""

_ACCOUNT = ('project', 'user')
"""Kinds of the parts of an account's name."""

_EVER = '1970-01-01T00:00:00Z'
"""Start of the epoch. Nova lists deleted servers only with ``changes-since``.
"""


class _NoServer(exceptions.CommandError):
    """No server with the name is visible to the caller."""


class Directory:
    """Names and IDs in Nova and Keystone that the caller may read.

    :param manager: the ClientManager of the command line.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def owner(self, noun: str, given: str) -> str:
        """Return the ID of a user or project; an unknown name is returned
        unchanged.

        LDAP may have IDs that look like names. A caller without access to
        Keystone may still enter an ID.

        :param noun: ``user`` or ``project``.
        :param given: ID or name, or ``me``.
        :raises CommandError: if several have the name.
        """
        if _ID.fullmatch(given):
            return given
        find = getattr(self._connection.identity, f'find_{noun}')
        found = _find_by_name(
            noun, given, lambda: find(given, ignore_missing=True)
        )
        return given if found is None else str(found.id)

    def account(self, given: str) -> str:
        """Return the name of an account: IDs, or a name in the file of shares.

        :param given: project, or ``PROJECT/USER``, by names or IDs.
        :raises CommandError: if several have the name.
        """
        parts = zip(_ACCOUNT, given.split('/', 1), strict=False)
        return '/'.join(self.owner(noun, part) for noun, part in parts)

    def server(self, given: str) -> str:
        """Return the ID of a server, also of another project.

        :param given: ID or name of the server.
        :raises CommandError: if there is none, or several have the name.
        """
        try:
            return str(uuid.UUID(given))
        except ValueError:
            found = self._find_server(given)
        return _id_of(given, found)

    def server_of_request(self, given: str) -> str:
        """Return the ID of a request, or of a server that has or had a
        request.

        Requests are stored longer than their servers, so names of deleted
        servers are accepted.

        :raises CommandError: if there is none, or several have the name.
        """
        try:
            return self.server(given)
        except _NoServer:
            return _id_of(given, self._find_deleted(given))

    def _find_server(self, given: str) -> Any:
        """Find a server by name: in the caller's project, or in any project if
        permitted.
        """
        find = functools.partial(
            self._connection.compute.find_server, given, ignore_missing=True
        )
        return _find_by_name(
            'server', given, lambda: find() or find(all_projects=True)
        )

    def _find_deleted(self, given: str) -> Any:
        """Find a deleted server by name, if Nova still stores it."""
        find = functools.partial(
            self._connection.compute.servers,
            details=False,
            name=f'^{re.escape(given)}$',
            changes_since=_EVER,
        )
        return _find_by_name(
            'server',
            given,
            lambda: (
                _single_by_name(given, find())
                or _single_by_name(given, find(all_projects=True))
            ),
        )

    @property
    def user_id(self) -> str | None:
        """ID of the user of the token; ``None`` if it is unknown."""
        found = getattr(self._manager, 'auth_ref', None)
        given: str | None = getattr(found, 'user_id', None)
        return given

    def names(self, plurals: Iterable[str]) -> Mapping[str, str]:
        """Return names by ID of the objects that the caller may list.

        :param plurals: ``servers``, ``projects`` or ``users``.
        """
        found: dict[str, str] = {}
        for plural in plurals:
            found |= self._list_names_by_id(plural)
        auth = getattr(self._manager, 'auth_ref', None)
        for noun in _ACCOUNT:
            name = getattr(
                auth, {'user': 'username'}.get(noun, f'{noun}_name'), None
            )
            if name:
                found[str(getattr(auth, f'{noun}_id'))] = plain.line(name)
        return found

    def _list_names_by_id(self, plural: str) -> dict[str, str]:
        connection = self._connection
        everywhere = {'details': False, 'all_projects': True}
        tries = (
            [
                (connection.compute, everywhere),
                (connection.compute, {'details': False}),
            ]
            if plural == 'servers'
            else [(connection.identity, {})]
        )
        for service, how in tries:
            try:
                return {
                    str(each.id): plain.line(str(each.name))
                    for each in getattr(service, plural)(**how)
                }
            except requests.HTTPError:
                continue
        return {}

    @property
    def _connection(self) -> Any:
        return self._manager.sdk_connection


def _id_of(given: str, found: Any) -> str:
    if found is None:
        raise _NoServer(
            f'no server {given!r} that you may see; give its name or id'
        )
    return str(found.id)


def _single_by_name(name: str, listed: Iterable[Any]) -> Any:
    """Return the server with a name, or ``None``.

    :raises DuplicateResource: if several have the name.
    """
    found = [each for each in listed if each.name == name]
    if len(found) > 1:
        raise sdk_exceptions.DuplicateResource(f'{len(found)} servers {name}')
    return found[0] if found else None


def _find_by_name(noun: str, given: str, find: Callable[[], Any]) -> Any:
    """Find an object by its name; return ``None`` if none is visible.

    :param find: looks up the object in Nova or Keystone.
    :raises CommandError: if several have the name.
    """
    try:
        return find()
    except sdk_exceptions.DuplicateResource as error:
        raise exceptions.CommandError(
            f'{noun} {given!r}: several have this name; give the id'
        ) from error
    except requests.HTTPError:
        return None
