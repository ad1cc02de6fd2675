# SPDX-License-Identifier: Apache-2.0

"""Members of server groups, read only when needed."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import paging

LOG = logging.getLogger(__name__)

_LOOKS = 2
_FEW = 3
_AT_ONCE = 20


def list_groups(api: clients.Api) -> list[Mapping[str, Any]]:
    """Return all server groups of all projects.

    :param api: API of Nova.
    :raises CloudError: if they cannot be read.
    """
    path = '/os-server-groups?all_projects=true'
    return paging.list_all_pages(
        api, path, 'server_groups', paging.query_after_count
    )


class ServerGroups:
    """Cache of the members of server groups; it is read again after servers
    were added.

    :param api: API of Nova.
    :ivar unreadable: errors of groups in the last read, by UUID.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api
        self._members: dict[str, list[str]] = {}
        self._anew = _LOOKS
        self._turn = ''
        self.unreadable: dict[str, Exception] = {}

    def note_new_server(self) -> None:
        """Record that a server was added, so that groups are read again.

        Nova lists a new server a little before the server is a member of its
        group. So groups are also read after the next :meth:`note_server_list`.
        """
        self._anew = _LOOKS

    def note_server_list(self) -> None:
        """Record that all servers were listed again."""
        self._anew = max(self._anew - 1, 0)

    def members(self, groups: Collection[str]) -> dict[str, list[str]]:
        """Return the UUIDs of the servers of groups; a deleted group has no
        servers.

        :raises CloudError: if they cannot be read.
        """
        if self._anew:
            self._members.clear()
        self.unreadable = {}
        missing = sorted(set(groups) - self._members.keys())
        if len(missing) <= _FEW:
            self._read_each(missing)
        else:
            try:
                self._read_from_list(missing)
            except exception.CloudError as error:
                self._read_some(missing, error)
        return {group: self._members.get(group, []) for group in groups}

    def _read_from_list(self, missing: Iterable[str]) -> None:
        """Read the members of groups from the list of all groups."""
        of = {
            each['id']: each.get('members')
            for each in list_groups(self._api)
            if isinstance(each, dict) and isinstance(each.get('id'), str)
        }
        for group in missing:
            self._store_members(group, functools.partial(of.get, group, ()))

    def _read_each(self, missing: Iterable[str]) -> None:
        """Read the members of groups one by one."""
        for group in missing:
            self._store_members(
                group, functools.partial(self._read_group, group)
            )

    def _read_some(
        self, missing: Sequence[str], error: exception.CloudError
    ) -> None:
        """Read some groups one by one, others in each call, because Nova fails
        for the whole list.

        One member in a cell that does not answer is enough for such a failure.
        """
        LOG.warning(
            'server groups: Nova fails to list them: %s; %d of %d are read one'
            ' by one, and requests of the other groups wait',
            error,
            min(len(missing), _AT_ONCE),
            len(missing),
        )
        turns = sorted(missing, key=lambda group: (group <= self._turn, group))
        self._turn = turns[:_AT_ONCE][-1]
        self.unreadable |= dict.fromkeys(turns[_AT_ONCE:], error)
        self._read_each(turns[:_AT_ONCE])

    def _store_members(
        self, group: str, read_members: Callable[[], object]
    ) -> None:
        """Cache the members of a group; record the error if they cannot be
        read.
        """
        try:
            with clients.parsing(f'what Nova says of server group {group}'):
                self._members[group] = _parse_members(read_members())
        except exception.CloudError as error:
            # Nova may fail for a single group; lists show whether Nova is
            # down.
            self.unreadable[group] = error

    def _read_group(self, group: str) -> object:
        """Return the members of one group from Nova."""
        found = self._api.get(f'/os-server-groups/{group}')
        return [] if found is None else found['server_group']['members']


def _parse_members(members: object) -> list[str]:
    """Return the UUIDs of a group's members.

    :raises TypeError: if the members are not a list of texts.
    """
    if not isinstance(members, list | tuple) or not all(
        isinstance(each, str) for each in members
    ):
        raise TypeError('members of a group must be a list of UUIDs')
    return list(members)
