# SPDX-License-Identifier: Apache-2.0

"""Connections to the services of the cloud with the token of the user."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import openstack
from openstack import exceptions
from openstack_auth import utils as auth_utils
from openstack_dashboard.api import base as horizon_api
from openstack_dashboard.api import keystone

from nova_fairness.client import sdk

_KEPT = '_fairness_connection'


def connect(request: Any) -> Any:
    """Return the connection of openstacksdk of an HTTP request.

    It uses the token of the user, and has ``fairness``.

    :param request: of Django. The connection is created once per request.
    """
    kept = getattr(request, _KEPT, None)
    if kept is None:
        kept = _new_connection(request)
        setattr(request, _KEPT, kept)
    return kept


def fairness_client(request: Any) -> sdk.FairnessProxy:
    """Return the client of the fairness API with the token of the user."""
    found: sdk.FairnessProxy = connect(request).fairness
    return found


class UserLists:
    """Names of servers, projects and users that the user of a page may list.

    :param request: of Django.
    """

    def __init__(self, request: Any) -> None:
        self._request = request

    @property
    def is_operator(self) -> bool:
        """Whether the page shows servers of all projects."""
        return bool(self._request.user.is_superuser)

    def own(self) -> Mapping[str, str]:
        """Return the names of the user and of their project, by ID."""
        user = self._request.user
        return {
            str(user.id): str(user.username),
            str(user.project_id): str(user.project_name),
            **{str(e.id): str(e.name) for e in user.authorized_tenants},
        }

    def projects(self) -> Mapping[str, str]:
        """Return the names of all projects in Keystone, by ID."""
        return _names_by_id(keystone.tenant_list(self._request)[0])

    def users(self) -> Mapping[str, str]:
        """Return the names of all users in Keystone, by ID."""
        return _names_by_id(keystone.user_list(self._request))

    def servers(self, *, is_everywhere: bool) -> Mapping[str, str]:
        """Return the names of servers in Nova, by ID.

        It reads the JSON of Nova: objects of openstacksdk for 1,000 servers
        would take a second.

        :param is_everywhere: list the servers of all projects.
        """
        answer = connect(self._request).compute.get(
            '/servers', params={'all_tenants': 'True'} if is_everywhere else {}
        )
        exceptions.raise_from_response(answer)
        return {
            str(each['id']): str(each['name'])
            for each in answer.json()['servers']
        }


def _names_by_id(listed: Iterable[Any]) -> dict[str, str]:
    return {str(each.id): str(each.name) for each in listed}


def _new_connection(request: Any) -> Any:
    url = horizon_api.url_for(request, 'compute')
    verify = (
        False
        if settings.OPENSTACK_SSL_NO_VERIFY
        else settings.OPENSTACK_SSL_CACERT or True
    )
    made = openstack.connection.Connection(
        session=session.Session(
            auth=token_endpoint.Token(url, request.user.token.id),
            original_ip=auth_utils.get_client_ip(request),
            verify=verify,
        ),
        region_name=request.user.services_region,
        compute_endpoint_override=url,
        compute_api_version='2',
        app_name='horizon',
    )
    sdk.register(made)
    return made
