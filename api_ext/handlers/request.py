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


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List requests of the caller's project, or of all."""
    project = whose(asked)
    marker = asked.query.get('marker')
    if marker is not None:
        _item(asked, marker)
    more: dict[str, Any] = {'audience': host_facts.audience(asked)}
    if (wanted := asked.query.get('preemptible')) is not None:
        more['preemptible'] = wanted == 'true'
    if filters := _filters(asked):
        more['filters'] = filters
    said = service.call_page(asked, 'list_requests', project, **more)
    return service.page(asked, said, 'requests', 'uuid', _JUDGE)


def whose(asked: http_request.CallerRequest) -> str | None:
    """Project whose requests are listed; ``None`` for all."""
    project: str | None = asked.query.get('project_id')
    if project in (None, asked.caller.project_id):
        return account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    asked.caller.require(policies.LIST_ALL)
    return project


def _filters(asked: http_request.CallerRequest) -> dict[str, Any]:
    """Arguments of the call that restrict the list of requests."""
    query = asked.query
    found: dict[str, Any] = {}
    if 'host' in query:
        # With this filter, callers could find the hosts of their servers.
        asked.caller.require(policies.LIST_ALL)
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
        found['since'] = seconds(query['since'])
    if query.get('ended') == 'true':
        found['ended'] = True
    # A filter by state, server or host includes running requests.
    is_any = any(key in query for key in ('state', 'server', 'host'))
    if query.get('running', 'true' if is_any else 'false') == 'false':
        found['unsettled'] = True
    return found


def seconds(text: str) -> float:
    """A time in seconds of the epoch; the default zone is UTC."""
    try:
        at = dt.datetime.fromisoformat(text)
        return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()
    except (ValueError, OverflowError) as error:
        raise faults.BadRequest(
            f'since {text!r} is not a time, expected such as 2026-01-05T14:00'
        ) from error


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one request, if the caller may see it."""
    uuid, more = asked.names['uuid'].lower(), {}
    if asked.query.get('events') == 'true':
        more['events'] = True
    return {'request': _item(asked, uuid, **more)}


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Carry out an action on a request, such as cancel, release or hold."""
    [[action, order]] = asked.body.items()
    uuid = asked.names['uuid'].lower()
    project = _item(asked, uuid)['project_id']
    asked.caller.require(base.name('requests', action), project_id=project)
    asked.log(f'{action} of request {uuid}')
    given: dict[str, Any] = {}
    if action == 'cancel':
        given['by_operator'] = project != asked.caller.project_id
    elif action in ('hold', 'unhold'):
        given['by_operator'] = asked.caller.may(policies.HOLD_AS_OPERATOR)
    given.update(order or {})
    service.call(asked, action, uuid=uuid, **given)
    # The answer of the action is not made for this caller.
    return {'request': _item(asked, uuid)}


def _item(
    asked: http_request.CallerRequest, uuid: str, **more: Any
) -> dict[str, Any]:
    """A request that the caller may see.

    :param more: further arguments of the call to the service.
    :raises NotFound: for others, as if they did not exist.
    """
    audience = host_facts.audience(asked)
    said = service.call(
        asked, 'get_request', uuid=uuid, audience=audience, **more
    )
    item = service.checked(service.part(said, 'request'), _JUDGE)
    if not asked.caller.may(policies.SHOW, project_id=item['project_id']):
        raise faults.NotFound(service.UNKNOWN.format(uuid))
    return item
