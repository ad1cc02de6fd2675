# SPDX-License-Identifier: Apache-2.0

"""Quotas of users and projects as weights of their parts of the cloud.

Nova's API is queried, because it gives the same answer for Nova's own limits
and Keystone's unified limits, and compute nodes have no database.
"""

from collections.abc import Mapping
from typing import Any
from typing import Protocol

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
import nova.conf

RESOURCES = ('instances', 'cores', 'ram')
"""Resources of Nova's quotas that can serve as weights."""

SMALLEST, LARGEST = 0.001, 1e6
"""Bounds of a weight, as of ``[fairness] quota_weights``."""

UNLIMITED = -1

_INTERFACES = ('internal', 'public')

_NO_PROJECT = (exceptions.BadRequest, exceptions.NotFound)
"""Errors of Nova for a project id that Keystone does not know."""


class QuotaApi(Protocol):
    """The methods of an HTTP client that are used here."""

    def get(self, url: str, **options: Any) -> Any:
        """Send a GET request; raises ``exceptions.NotFound`` for status
        404.
        """


def create_clients(section: str, region: str) -> tuple[QuotaApi, QuotaApi]:
    """Create clients of Nova's and Keystone's API without sending a request.

    :param section: of Nova's configuration with options of keystoneauth.
    :param region: of the endpoints; empty for the only one.
    :raises oslo_config.cfg.Error: if the section is unusable.
    """
    conf = nova.conf.CONF
    loading.register_auth_conf_options(conf, section)
    loading.register_session_conf_options(conf, section)
    session = loading.load_session_from_conf_options(
        conf, section, auth=loading.load_auth_from_conf_options(conf, section)
    )

    def made(service: str, version: str | None = None) -> QuotaApi:
        client: QuotaApi = adapter.Adapter(
            session,
            service_type=service,
            interface=list(_INTERFACES),
            region_name=region or None,
            min_version=version,
            max_version=None if version is None else f'{version}.latest',
        )
        return client

    # Catalogs name Keystone with and without a version.
    return made('compute'), made('identity', '3')


class QuotaWeights:
    """Queries the weight of a user or project; calls may block.

    The weight is the limit divided by the default limit. So a project with the
    default limit has weight 1, as does one without a limit. The weight of a
    user is the sum over the projects in which the user has a role.

    :param resource: one of :data:`RESOURCES`.
    :param compute: client of Nova's API.
    :param identity: client of Keystone's API.
    """

    def __init__(
        self, resource: str, compute: QuotaApi, identity: QuotaApi
    ) -> None:
        self._resource = resource
        self._compute = compute
        self._identity = identity

    def of_project(self, project: str) -> float | None:
        """Return the weight of a project; ``None`` if it is unknown."""
        try:
            return _bounded_weight(self._weight(project, {}))
        except _NO_PROJECT:
            return None

    def of_user(self, user: str) -> float | None:
        """Return the weight of a user; ``None`` if the user is unknown."""
        projects = self._projects_of_user(user)
        if not projects:
            return None
        asked = {'user_id': user}
        return _bounded_weight(
            sum(self._weight(name, asked) for name in projects)
        )

    def _weight(self, project: str, query: Mapping[str, str]) -> float:
        limit = self._query_limit(f'/os-quota-sets/{project}', query)
        default = self._query_limit(f'/os-quota-sets/{project}/defaults', {})
        if UNLIMITED in (limit, default) or not default:
            return 1.0
        return limit / default

    def _query_limit(self, url: str, query: Mapping[str, str]) -> int:
        answer = self._compute.get(url, params=dict(query)).json()
        return int(answer['quota_set'][self._resource])

    def _projects_of_user(self, user: str) -> list[str]:
        query = {'user.id': user, 'effective': 'true'}
        try:
            found = self._identity.get('/role_assignments', params=query)
        except exceptions.NotFound as error:
            # Keystone names who is missing; a wrong endpoint names nobody.
            if user in str(error):
                return []
            raise
        answer = found.json()
        scopes = [item['scope'] for item in answer['role_assignments']]
        return sorted(
            {scope['project']['id'] for scope in scopes if 'project' in scope}
        )


def _bounded_weight(weight: float) -> float:
    return min(max(weight, SMALLEST), LARGEST)
