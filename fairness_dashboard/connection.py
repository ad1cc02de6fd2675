# SPDX-License-Identifier: Apache-2.0

"""The cloud as the user of a page may see it."""

import logging
from typing import Any

from django.conf import settings
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import openstack
from openstack_auth import utils as auth_utils
from openstack_dashboard.api import base as horizon_api
from openstack_dashboard.api import keystone

from nova_fairness.client import sdk

LOG = logging.getLogger(__name__)

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


def project_names(request: Any) -> dict[str, str]:
    """Names of projects by their IDs; empty if Keystone does not list them.

    For pages of operators. Where it fails the page shows IDs alone.
    """
    try:
        found, _ = keystone.tenant_list(request)
    except Exception:  # noqa: BLE001  # of any library below
        LOG.info('names of projects are not known: Keystone lists none')
        return {}
    return {str(each.id): str(each.name) for each in found}


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
