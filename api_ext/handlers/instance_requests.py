# SPDX-License-Identifier: Apache-2.0

"""Joins answers about instances with their requests, if there are any."""

from collections.abc import Mapping
import logging
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import instance_states
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.schemas import request as schemas
from nova_fairness import exception

LOG = logging.getLogger(__name__)

_READER = validation.AnswerReader(
    schemas.ITEM,
    *('uuid', 'project_id', 'user_id', 'standing', 'status', 'leaving'),
)
_QUIET = frozenset({'runs', 'ended'})
"""Standings for which agents and Nova know everything."""

_AT_REST = frozenset({'waits', 'starts', 'away'})
_OF_ONE = frozenset({'leaves', 'away', 'moves'})
"""Standings that may belong to another server of the request."""


def is_at_rest(request: Mapping[str, Any] | None) -> bool:
    """Whether no agent can know more about an instance than its request."""
    return request is not None and request['standing'] in _AT_REST


def is_quiet(request: Mapping[str, Any] | None) -> bool:
    """Whether a request does not affect the state of an instance."""
    return request is None or request['standing'] in _QUIET


def joined(
    item: Mapping[str, Any], request: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Answer about an instance, with data of the cluster service.

    :param request: request of the instance; ``None`` if unknown: then the
        answer does not change.
    """
    if request is None:
        return dict(item)
    standing = request['standing']
    known = {'request_id': request['uuid'], 'standing': standing}
    if is_quiet(request):
        return {**item, **known}
    said = f'This server {request["status"]}.'
    if is_at_rest(request) or not instance_states.is_measured(item):
        # Advice by agents does not fit a change that the service decided.
        return {**item, **known, 'summary': said, 'advice': [said]}
    before = item.get('summary', '')
    return {**item, **known, 'summary': f'{said} {before}'.rstrip()}


def newest(
    asked: http_request.CallerRequest, uuid: str, project: str | None = None
) -> dict[str, Any] | None:
    """Newest request of an instance, if it concerns this instance.

    :param project: owner of the instance; ``None`` if only the request knows.
    """
    audience = host_facts.audience(asked)
    try:
        said = asked.requests.call('get_request', uuid=uuid, audience=audience)
        found = service.checked(service.part(said, 'request'), _READER)
    except (exception.FairnessError, faults.Fault) as error:
        LOG.debug('instance %s: its request is not known: %s', uuid, error)
        return None
    if project is not None and found['project_id'] != project:
        return None
    servers = found.get('servers', ())
    leaving = [each.get('server') for each in found['leaving']]
    is_other = len(servers) > 1 and uuid not in leaving
    if found['standing'] in _OF_ONE and is_other:
        return None
    return found
