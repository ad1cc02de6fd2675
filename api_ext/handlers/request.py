# SPDX-License-Identifier: Apache-2.0

"""Answers which requests wait, and takes them back or starts them."""

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
    """List requests of the own project, or of all."""
    project = account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    marker = asked.query.get('marker')
    if marker is not None:
        _item(asked, marker)
    more: dict[str, Any] = {'audience': host_facts.audience(asked)}
    if (wanted := asked.query.get('preemptible')) is not None:
        more['preemptible'] = wanted == 'true'
    said = service.call_page(asked, 'list_requests', project, **more)
    return service.page(asked, said, 'requests', 'uuid', _JUDGE)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one request, if the caller may see it."""
    return {'request': _item(asked, asked.names['uuid'].lower())}


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Take a request back, start it, hold it, or let it run longer."""
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
    # What it answers is for nobody in particular.
    return {'request': _item(asked, uuid)}


def _item(asked: http_request.CallerRequest, uuid: str) -> dict[str, Any]:
    """One request that the caller may see.

    :raises NotFound: for others, as if they were not there.
    """
    said = service.call(
        asked, 'get_request', uuid=uuid, audience=host_facts.audience(asked)
    )
    item = service.checked(service.part(said, 'request'), _JUDGE)
    if not asked.caller.may(policies.SHOW, project_id=item['project_id']):
        raise faults.NotFound(service.UNKNOWN.format(uuid))
    return item
