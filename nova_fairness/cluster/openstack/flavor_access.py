# SPDX-License-Identifier: Apache-2.0

"""Access of projects to flavors that are not public."""

from collections.abc import Callable
from collections.abc import Mapping
import time
from typing import Any

from nova_fairness.cluster.openstack import clients

KEPT_S = 300.0
"""Seconds for which an answer of Nova is cached."""

AT_ONCE = 20
"""Largest number of flavors that one call reads. A project whose access is
still unknown gets the remaining flavors in a later call.
"""

_PUBLIC = 'os-flavor-access:is_public'


class FlavorAccess:
    """Reads from Nova which projects may use a flavor, and caches the answers.

    :param api: API of Nova.
    :param clock: returns monotonic seconds.
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
        """Return the flavors that a project may use: public flavors, and
        flavors with access for the project.

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
        """Return the IDs of projects that may use a flavor; empty if
        unknown.
        """
        _, projects = self._known.get(flavor, (0.0, frozenset[str]()))
        return projects

    def _read_access(self, private_flavors: list[Mapping[str, Any]]) -> None:
        """Read the projects of some private flavors that are not in the
        cache.
        """
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
