# SPDX-License-Identifier: Apache-2.0

"""Handlers of migration plans."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import service
from api_ext.policies import base
from api_ext.schemas import plan as schemas

_PLAN = validation.AnswerReader(schemas.PLAN, 'uuid', 'state')
_IN_FULL = validation.AnswerReader(schemas.PLAN_IN_FULL, 'uuid', 'state')


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List migration plans."""
    marker, limit = asked.query.get('marker'), service.limit(asked)
    said = service.call(asked, 'list_plans', marker=marker, limit=limit)
    return service.page(asked, said, 'plans', 'uuid', _PLAN)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one plan, with its moves."""
    uuid = asked.names['uuid'].lower()
    said = service.call(asked, 'get_plan', uuid=uuid)
    return {'plan': service.checked(service.part(said, 'plan'), _IN_FULL)}


def create(asked: http_request.CallerRequest) -> http_request.Answer:
    """Propose a plan that empties a host."""
    host = asked.body['empty']
    asked.log(f'a plan that empties {host}')
    said = service.call(asked, 'empty_host', name=host)
    return {'plan': service.checked(service.part(said, 'plan'), _IN_FULL)}


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Approve or stop a plan."""
    [action], uuid = asked.body, asked.names['uuid'].lower()
    asked.caller.require(base.name('plans', action))
    asked.log(f'{action} of plan {uuid}')
    said = service.call(asked, f'{action}_plan', uuid=uuid)
    return {'plan': service.checked(service.part(said, 'plan'), _IN_FULL)}
