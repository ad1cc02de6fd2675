# SPDX-License-Identifier: Apache-2.0

"""Members of server groups, asked for no oftener than needed."""

from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from nova_fairness.cluster import clients
from nova_fairness.cluster import listing

_LOOKS = 2
_FEW = 3


def listed(api: clients.Api) -> list[Mapping[str, Any]]:
    """All server groups of all projects.

    :param api: of Nova.
    :raises CloudError: if they cannot be read.
    """
    path = '/os-server-groups?all_projects=true'
    return listing.listed(api, path, 'server_groups', listing.after_so_many)


class ServerGroups:
    """Members of server groups; they are asked for again if servers came.

    :param api: of Nova.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api
        self._members: dict[str, list[str]] = {}
        self._anew = _LOOKS

    def renew(self) -> None:
        """Say that a server came.

        Nova lists it a moment before it is a member of its group, so that it
        is asked once more after the next :meth:`look`.
        """
        self._anew = _LOOKS

    def look(self) -> None:
        """Say that all servers are looked at again."""
        self._anew = max(self._anew - 1, 0)

    def members(self, groups: Collection[str]) -> dict[str, list[str]]:
        """UUIDs of the servers of groups; of one that is gone there are none.

        :raises CloudError: if they cannot be read.
        """
        if self._anew:
            self._members.clear()
        missing = sorted(set(groups) - self._members.keys())
        if len(missing) > _FEW:
            of = {each['id']: each['members'] for each in listed(self._api)}
            self._members |= {each: list(of.get(each, ())) for each in missing}
        else:
            for group in missing:
                self._members[group] = self._of(group)
        return {group: self._members[group] for group in groups}

    def _of(self, group: str) -> list[str]:
        found = self._api.get(f'/os-server-groups/{group}')
        return list(found['server_group']['members']) if found else []
