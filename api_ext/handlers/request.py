# SPDX-License-Identifier: Apache-2.0

"""Handlers of requests."""

import datetime as dt
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import account_access
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import base
from api_ext.policies import request as policies
from api_ext.schemas import request as schemas

_JUDGE = validation.AnswerReader(
    schemas.ITEM, 'uuid', 'project_id', 'state', 'reason'
)


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List requests of the caller's project, or of all projects."""
    project = permitted_project(caller_request)
    marker = caller_request.query.get('marker')
    if marker is not None:
        _item(caller_request, marker)
    more: dict[str, Any] = {'audience': host_facts.audience(caller_request)}
    if (wanted := caller_request.query.get('preemptible')) is not None:
        more['preemptible'] = wanted == 'true'
    if filters := _filters(caller_request):
        more['filters'] = filters
    said = service.call_page(caller_request, 'list_requests', project, **more)
    return service.page(caller_request, said, 'requests', 'uuid', _JUDGE)


def permitted_project(
    caller_request: http_request.CallerRequest,
) -> str | None:
    """Check the permission for a list of requests, and return its project;
    ``None`` for all.
    """
    project: str | None = caller_request.query.get('project_id')
    if project in (None, caller_request.caller.project_id):
        return account_access.permitted_project(
            caller_request, policies.LIST, policies.LIST_ALL
        )
    caller_request.caller.require(policies.LIST_ALL)
    return project


def _filters(caller_request: http_request.CallerRequest) -> dict[str, Any]:
    """Return the RPC arguments that restrict the list of requests."""
    query = caller_request.query
    found: dict[str, Any] = {}
    if 'host' in query:
        # With this filter, callers could find the hosts of their servers.
        caller_request.caller.require(policies.LIST_ALL)
    names = {
        'state': 'state',
        'user_id': 'user',
        'server': 'server',
        'host': 'host',
    }
    found.update({names[key]: query[key] for key in names if key in query})
    if 'server' in found:
        found['server'] = found['server'].lower()
    if 'since' in query:
        found['since'] = parse_time_s(query['since'])
    if query.get('ended') == 'true':
        found['ended'] = True
    # A filter by state, server or host includes running requests.
    is_any = any(key in query for key in ('state', 'server', 'host'))
    if query.get('running', 'true' if is_any else 'false') == 'false':
        found['unsettled'] = True
    return found


def parse_time_s(text: str) -> float:
    """Parse a time into seconds since the epoch; the default zone is UTC.

    :raises BadRequest: if the text is not a time.
    """
    try:
        at = dt.datetime.fromisoformat(text)
        return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()
    except (ValueError, OverflowError) as error:
        raise faults.BadRequest(
            f'since: got {text!r}, expected a time such as 2026-01-05T14:00'
        ) from error


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return one request, if the caller may see it."""
    uuid, more = caller_request.names['uuid'].lower(), {}
    if caller_request.query.get('events') == 'true':
        more['events'] = True
    return {'request': _item(caller_request, uuid, **more)}


def perform(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Execute an action on a request, such as cancel, release or hold."""
    [[action, order]] = caller_request.body.items()
    uuid = caller_request.names['uuid'].lower()
    project = _item(caller_request, uuid)['project_id']
    caller_request.caller.require(
        base.rule_name('requests', action), project_id=project
    )
    caller_request.log(f'{action} of request {uuid}')
    given: dict[str, Any] = {}
    if action == 'cancel':
        given['by_operator'] = project != caller_request.caller.project_id
    elif action in ('hold', 'unhold'):
        given['by_operator'] = caller_request.caller.is_allowed(
            policies.HOLD_AS_OPERATOR
        )
    given.update(order or {})
    service.call(caller_request, action, uuid=uuid, **given)
    # The answer of the action is not made for this caller.
    return {'request': _item(caller_request, uuid)}


def _item(
    caller_request: http_request.CallerRequest, uuid: str, **more: Any
) -> dict[str, Any]:
    """Return a request that the caller may see.

    :param more: further arguments of the RPC.
    :raises NotFound: if the caller may not see it, as if it did not exist.
    """
    audience = host_facts.audience(caller_request)
    said = service.call(
        caller_request, 'get_request', uuid=uuid, audience=audience, **more
    )
    item = service.parse_fields(
        service.required_field(said, 'request'), _JUDGE
    )
    if not caller_request.caller.is_allowed(
        policies.SHOW, project_id=item['project_id']
    ):
        raise faults.NotFound(service.UNKNOWN.format(uuid))
    return item
