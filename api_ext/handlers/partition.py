# SPDX-License-Identifier: Apache-2.0

"""Handlers of hosts that move between batch system and cloud."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import service
from api_ext.policies import base
from api_ext.schemas import partition as schemas

_BORDER = validation.AnswerReader(schemas.BORDER, 'states')
_HOST = validation.AnswerReader(schemas.HOST, 'name', 'state')
_IN_FULL = validation.AnswerReader(schemas.HOST_IN_FULL, 'name', 'state')
_TARGET = validation.AnswerReader(schemas.TARGET, 'target')


def show_border(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Return the demand and the hosts of batch system and cloud."""
    said = service.call(caller_request, 'get_border')
    found = service.required_field(said, 'partition')
    return {'partition': service.parse_fields(found, _BORDER)}


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List hosts that move between batch system and cloud."""
    marker, limit = (
        caller_request.query.get('marker'),
        service.page_limit(caller_request),
    )
    said = service.call(
        caller_request, 'list_border_hosts', marker=marker, limit=limit
    )
    return service.page(caller_request, said, 'hosts', 'name', _HOST)


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return one host, with its work and its history."""
    said = service.call(
        caller_request, 'get_border_host', name=caller_request.names['host']
    )
    return {
        'host': service.parse_fields(
            service.required_field(said, 'host'), _IN_FULL
        )
    }


def perform(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Move a host to the other system, or cancel its move."""
    [action], host = caller_request.body, caller_request.names['host']
    caller_request.caller.require(base.rule_name('partition', action))
    caller_request.log(f'{action} {host}')
    said = service.call(caller_request, f'{action}_host', name=host)
    return {
        'host': service.parse_fields(
            service.required_field(said, 'host'), _IN_FULL
        )
    }


def set_target(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """Set the number of hosts that the cloud is to have."""
    target = caller_request.body['target']
    caller_request.log(f'target {target}')
    said = service.call(caller_request, 'set_target', hosts=target)
    return service.parse_fields(said, _TARGET)
