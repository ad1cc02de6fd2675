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


def border(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show demand and hosts of batch system and cloud."""
    said = service.call(asked, 'get_border')
    found = service.part(said, 'partition')
    return {'partition': service.checked(found, _BORDER)}


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List hosts between batch system and cloud."""
    marker, limit = asked.query.get('marker'), service.limit(asked)
    said = service.call(asked, 'list_border_hosts', marker=marker, limit=limit)
    return service.page(asked, said, 'hosts', 'name', _HOST)


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show one host, with its work and its history."""
    said = service.call(asked, 'get_border_host', name=asked.names['host'])
    return {'host': service.checked(service.part(said, 'host'), _IN_FULL)}


def perform(asked: http_request.CallerRequest) -> http_request.Answer:
    """Move a host to the other side, or cancel its move."""
    [action], host = asked.body, asked.names['host']
    asked.caller.require(base.name('partition', action))
    asked.log(f'{action} {host}')
    said = service.call(asked, f'{action}_host', name=host)
    return {'host': service.checked(service.part(said, 'host'), _IN_FULL)}


def set_target(asked: http_request.CallerRequest) -> http_request.Answer:
    """Set the number of hosts that the cloud is to have."""
    target = asked.body['target']
    asked.log(f'target {target}')
    said = service.call(asked, 'set_target', hosts=target)
    return service.checked(said, _TARGET)
