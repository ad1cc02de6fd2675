# SPDX-License-Identifier: Apache-2.0

"""Names of servers, users and projects, and their ids."""

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
"""IDs as Keystone makes them, or ``me``: the owner of the token."""

_ACCOUNT = ('project', 'user')
"""The parts of an account's name."""

_EVER = '1970-01-01T00:00:00Z'
"""Nova lists deleted servers only among those that changed since then."""


class _NoServer(exceptions.CommandError):
    """There is no server of a name, as far as the caller may see."""


class Directory:
    """Names and ids in Nova and Keystone, as far as the caller may ask.

    :param manager: the ClientManager of the command line.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def owner(self, noun: str, given: str) -> str:
        """The id of a user or project; other names stay as they are.

        LDAP may know ids that look like names. A caller that may not ask
        Keystone may still know an id.

        :param noun: ``user`` or ``project``.
        :param given: id or name, or ``me``.
        :raises CommandError: if several have the name.
        """
        if _ID.fullmatch(given):
            return given
        find = getattr(self._connection.identity, f'find_{noun}')
        found = _found(noun, given, lambda: find(given, ignore_missing=True))
        return given if found is None else str(found.id)

    def account(self, given: str) -> str:
        """The name of an account: ids, or a name of the file of shares.

        :param given: project, or ``PROJECT/USER``, by names or ids.
        :raises CommandError: if several have the name.
        """
        parts = zip(_ACCOUNT, given.split('/', 1), strict=False)
        return '/'.join(self.owner(noun, part) for noun, part in parts)

    def server(self, given: str) -> str:
        """The id of a server; also one of another project.

        :raises CommandError: if there is none, or several have the name.
        """
        try:
            return str(uuid.UUID(given))
        except ValueError:
            found = self._find_server(given)
        return _id_of(given, found)

    def server_of_request(self, given: str) -> str:
        """The id of a server that has, or had, a request; or of a request.

        Requests are known after their servers were deleted, and are then
        found by the names of these, too.

        :raises CommandError: as of :meth:`server`.
        """
        try:
            return self.server(given)
        except _NoServer:
            return _id_of(given, self._find_deleted(given))

    def _find_server(self, given: str) -> Any:
        """One of the own project, or of any for those who may list all."""
        find = functools.partial(
            self._connection.compute.find_server, given, ignore_missing=True
        )
        return _found(
            'server', given, lambda: find() or find(all_projects=True)
        )

    def _find_deleted(self, given: str) -> Any:
        """A server that was deleted, as long as Nova knows it."""
        find = functools.partial(
            self._connection.compute.servers,
            details=False,
            name=f'^{re.escape(given)}$',
            changes_since=_EVER,
        )
        return _found(
            'server',
            given,
            lambda: (
                _only(given, find()) or _only(given, find(all_projects=True))
            ),
        )

    @property
    def user_id(self) -> str | None:
        """ID of the user of the token; ``None`` if it is not known."""
        found = getattr(self._manager, 'auth_ref', None)
        given: str | None = getattr(found, 'user_id', None)
        return given

    def names(self, plurals: Iterable[str]) -> Mapping[str, str]:
        """Names by id, of the things that the caller may list.

        :param plurals: ``servers``, ``projects`` or ``users``.
        """
        found: dict[str, str] = {}
        for plural in plurals:
            found |= self._named(plural)
        auth = getattr(self._manager, 'auth_ref', None)
        for noun in _ACCOUNT:
            name = getattr(
                auth, {'user': 'username'}.get(noun, f'{noun}_name'), None
            )
            if name:
                found[str(getattr(auth, f'{noun}_id'))] = plain.line(name)
        return found

    def _named(self, plural: str) -> dict[str, str]:
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


def _only(name: str, listed: Iterable[Any]) -> Any:
    """The one with a name; ``None`` without.

    :raises DuplicateResource: if several have it.
    """
    found = [each for each in listed if each.name == name]
    if len(found) > 1:
        raise sdk_exceptions.DuplicateResource(f'{len(found)} servers {name}')
    return found[0] if found else None


def _found(noun: str, given: str, find: Callable[[], Any]) -> Any:
    """Find a thing by its name; ``None`` if there is none to be seen.

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
