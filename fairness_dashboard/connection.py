# SPDX-License-Identifier: Apache-2.0

"""The cloud as the user of a page may see it."""

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


def of(request: Any) -> Any:
    """A connection of openstacksdk with ``fairness`` and the user's token.

    :param request: of Django; it keeps the connection for its other parts.
    """
    kept = getattr(request, _KEPT, None)
    if kept is None:
        kept = _made(request)
        setattr(request, _KEPT, kept)
    return kept


def fairness(request: Any) -> sdk.FairnessProxy:
    """The interface of this product, with the user's token."""
    found: sdk.FairnessProxy = of(request).fairness
    return found


class UserLists:
    """Names that the user of a page may list.

    :param request: of Django.
    """

    def __init__(self, request: Any) -> None:
        self._request = request

    @property
    def is_operator(self) -> bool:
        """Whether servers of all projects are asked for."""
        return bool(self._request.user.is_superuser)

    def own(self) -> Mapping[str, str]:
        """Names that Horizon knows of the user, by ID."""
        user = self._request.user
        return {
            str(user.id): str(user.username),
            str(user.project_id): str(user.project_name),
            **{str(e.id): str(e.name) for e in user.authorized_tenants},
        }

    def projects(self) -> Mapping[str, str]:
        """Projects of Keystone."""
        return _named(keystone.tenant_list(self._request)[0])

    def users(self) -> Mapping[str, str]:
        """Users of Keystone."""
        return _named(keystone.user_list(self._request))

    def servers(self, *, is_everywhere: bool) -> Mapping[str, str]:
        """Servers that Nova lists at once.

        Objects of openstacksdk for 1,000 servers would take a second.
        """
        answer = of(self._request).compute.get(
            '/servers', params={'all_tenants': 'True'} if is_everywhere else {}
        )
        exceptions.raise_from_response(answer)
        return {
            str(each['id']): str(each['name'])
            for each in answer.json()['servers']
        }


def _named(listed: Iterable[Any]) -> dict[str, str]:
    return {str(each.id): str(each.name) for each in listed}


def _made(request: Any) -> Any:
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
