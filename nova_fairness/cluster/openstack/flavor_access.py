# SPDX-License-Identifier: Apache-2.0

"""Projects that may use flavors that are not public."""

from collections.abc import Callable
from collections.abc import Mapping
import time
from typing import Any

from nova_fairness.cluster.openstack import clients

KEPT_S = 300.0
"""Seconds for which an answer of Nova is used again."""

AT_ONCE = 20
"""Flavors that one answer looks up: a project whose access is still unknown
sees the remaining flavors in a later answer.
"""

_PUBLIC = 'os-flavor-access:is_public'


class FlavorAccess:
    """Asks Nova which projects may use a flavor, and caches the answers.

    :param api: API of Nova.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        api: clients.Api,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, frozenset[str]]] = {}

    def usable_flavors(
        self, flavors: list[Mapping[str, Any]], project: str
    ) -> list[Mapping[str, Any]]:
        """Flavors that a project may use: public ones, and its own.

        :param flavors: all flavors, as Nova lists them.
        :param project: ID of the project; '' for public flavors only.
        :raises CloudError: if Nova does not answer.
        """
        private = [each for each in flavors if each.get(_PUBLIC) is False]
        if project:
            self._read_access(private)
        hidden = {
            each['id']
            for each in private
            if project not in self._allowed_projects(each['id'])
        }
        return [each for each in flavors if each['id'] not in hidden]

    def _allowed_projects(self, flavor: str) -> frozenset[str]:
        _, projects = self._known.get(flavor, (0.0, frozenset[str]()))
        return projects

    def _read_access(self, private_flavors: list[Mapping[str, Any]]) -> None:
        now, there = self._clock(), {each['id'] for each in private_flavors}
        self._known = {
            flavor: (at, projects)
            for flavor, (at, projects) in self._known.items()
            if flavor in there and now - at < KEPT_S
        }
        new = sorted(there - self._known.keys())
        for flavor in new[:AT_ONCE]:
            found = self._api.get(f'/flavors/{flavor}/os-flavor-access') or {}
            projects = frozenset(
                str(each['tenant_id'])
                for each in found.get('flavor_access', ())
            )
            self._known[flavor] = now, projects
