# SPDX-License-Identifier: Apache-2.0

"""Combination of answers about instances with their requests."""

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
"""Standings in which the request adds nothing to the data of agents and
Nova.
"""

_AT_REST = frozenset({'waits', 'starts', 'away'})
_OF_ONE = frozenset({'leaves', 'away', 'moves'})
"""Standings that may belong to another server of the request."""


def is_at_rest(request: Mapping[str, Any] | None) -> bool:
    """Return whether an instance does not run according to its request, so
    that no agent measures it.
    """
    return request is not None and request['standing'] in _AT_REST


def has_no_effect(request: Mapping[str, Any] | None) -> bool:
    """Return whether a request does not affect the state of an instance."""
    return request is None or request['standing'] in _QUIET


def with_request(
    item: Mapping[str, Any], request: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return an answer about an instance, extended by the data of its request.

    :param request: request of the instance; ``None`` if unknown: the answer
        then stays unchanged.
    """
    if request is None:
        return dict(item)
    standing = request['standing']
    known = {'request_id': request['uuid'], 'standing': standing}
    if has_no_effect(request):
        return {**item, **known}
    said = f'This server {request["status"]}.'
    if is_at_rest(request) or not instance_states.is_measured(item):
        # Advice by agents does not fit a change that the service decided.
        return {**item, **known, 'summary': said, 'advice': [said]}
    before = item.get('summary', '')
    return {**item, **known, 'summary': f'{said} {before}'.rstrip()}


def newest_request(
    caller_request: http_request.CallerRequest,
    uuid: str,
    project: str | None = None,
) -> dict[str, Any] | None:
    """Return the newest request of an instance, or ``None``.

    The result is also ``None`` if the request concerns another server of the
    same request.

    :param project: owner of the instance; ``None`` accepts any owner.
    """
    audience = host_facts.audience(caller_request)
    try:
        said = caller_request.requests.call(
            'get_request', uuid=uuid, audience=audience
        )
        found = service.parse_fields(
            service.required_field(said, 'request'), _READER
        )
    except (exception.FairnessError, faults.Fault) as error:
        LOG.debug('instance %s: request not available: %s', uuid, error)
        return None
    if project is not None and found['project_id'] != project:
        return None
    servers = found.get('servers', ())
    leaving = [each.get('server') for each in found['leaving']]
    is_other = len(servers) > 1 and uuid not in leaving
    if found['standing'] in _OF_ONE and is_other:
        return None
    return found
