# SPDX-License-Identifier: Apache-2.0

"""Handlers of migration plans."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import service
from api_ext.policies import base
from api_ext.schemas import plan as schemas

_PLAN = validation.AnswerReader(schemas.PLAN, 'uuid', 'state')
_IN_FULL = validation.AnswerReader(schemas.PLAN_IN_FULL, 'uuid', 'state')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List migration plans."""
    marker, limit = (
        caller_request.query.get('marker'),
        service.page_limit(caller_request),
    )
    said = service.call(
        caller_request, 'list_plans', marker=marker, limit=limit
    )
    return service.page(caller_request, said, 'plans', 'uuid', _PLAN)


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return one migration plan, with its moves."""
    uuid = caller_request.names['uuid'].lower()
    said = service.call(caller_request, 'get_plan', uuid=uuid)
    return {
        'plan': service.parse_fields(
            service.required_field(said, 'plan'), _IN_FULL
        )
    }


def create(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Propose a migration plan that empties a host."""
    host = caller_request.body['empty']
    caller_request.log(f'a plan that empties {host}')
    said = service.call(caller_request, 'empty_host', name=host)
    return {
        'plan': service.parse_fields(
            service.required_field(said, 'plan'), _IN_FULL
        )
    }


def perform(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Approve or stop a migration plan."""
    [action], uuid = caller_request.body, caller_request.names['uuid'].lower()
    caller_request.caller.require(base.rule_name('plans', action))
    caller_request.log(f'{action} of plan {uuid}')
    said = service.call(caller_request, f'{action}_plan', uuid=uuid)
    return {
        'plan': service.parse_fields(
            service.required_field(said, 'plan'), _IN_FULL
        )
    }
