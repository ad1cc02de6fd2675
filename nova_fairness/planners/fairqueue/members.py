# SPDX-License-Identifier: Apache-2.0

"""Running members of server groups, and members that end.

The hosts of the members of a group are known. The servers that are the members
are not always known. An unknown member counts as ended only when all servers
of the project on its host that could be this member have ended.
"""

from collections.abc import Callable
from collections.abc import Iterable
import functools

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners import hosts as hosts_module

Ended = Callable[[cluster.Running], bool]

_Servers = list[tuple[cluster.Running, int]]
"""Servers, and the rows of their hosts."""


class GroupMembers:
    """Members of server groups, including servers that a plan starts.

    :param snapshot: state of the cloud.
    :param hosts: hosts of the cloud.
    """

    def __init__(
        self, snapshot: cluster.ClusterSnapshot, hosts: hosts_module.Hosts
    ) -> None:
        self._snapshot = snapshot
        self._hosts = hosts
        self._added: dict[str, _Servers] = {}
        self._known: dict[str, tuple[_Servers, dict[int, int]]] = {}

    def add(self, servers: Iterable[tuple[cluster.Running, int]]) -> None:
        """Add servers that a plan starts; their attribute ``group`` is set."""
        for each, row in servers:
            if each.group:
                self._added.setdefault(each.group, []).append((each, row))

    def gone(
        self, group: str, project: str, ended: Ended
    ) -> cluster.Amounts | None:
        """Return the number of ended members on each host, (p,); ``None`` if
        there are no members.

        :param group: UUID of the group.
        :param project: project of the group.
        :param ended: returns whether a server has ended.
        """
        added = self._added.get(group, [])
        if not added and not self._snapshot.member_hosts.get(group):
            return None
        servers, others = self._known_members(group)
        found = np.zeros(len(self._hosts.names), dtype=np.int64)
        for each, row in (*servers, *added):
            found[row] += ended(each)
        for row, count in others.items():
            there = self._possible_members(row, project)
            if there and all(ended(each) for each in there):
                found[row] += count
        return found

    def _known_members(self, group: str) -> tuple[_Servers, dict[int, int]]:
        """Return the known members, and the number of unknown members by
        row of host.
        """
        if group not in self._known:
            names = self._snapshot.member_hosts.get(group, ())
            rows = self._hosts.rows(names)
            left = dict(zip(*np.unique(rows, return_counts=True), strict=True))
            servers = []
            for each in self._servers_by_group.get((group, ''), ()):
                for row in self._hosts.rows([each.host]).tolist():
                    # A member must not be counted twice as ended.
                    if left.get(row, 0) > 0:
                        servers.append((each, row))
                        left[row] -= 1
            self._known[group] = servers, {r: n for r, n in left.items() if n}
        return self._known[group]

    def _possible_members(
        self, row: int, project: str
    ) -> list[cluster.Running]:
        """Return servers on a host whose group is unknown, so that they may
        be members.
        """
        there = self._servers_by_group.get(('', self._hosts.names[row]), ())
        return [each for each in there if each.project == project]

    @functools.cached_property
    def _servers_by_group(
        self,
    ) -> dict[tuple[str, str], list[cluster.Running]]:
        """Return servers by group, or by host if their group is unknown."""
        found: dict[tuple[str, str], list[cluster.Running]] = {}
        for each in self._snapshot.running:
            group = self._group_of_server(each)
            key = (group, '') if group else ('', each.host)
            found.setdefault(key, []).append(each)
        return found

    def _group_of_server(self, each: cluster.Running) -> str:
        return each.group or self._snapshot.belongs.get(each.uuid, '')
