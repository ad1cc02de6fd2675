# SPDX-License-Identifier: Apache-2.0

"""Handlers of prices of hosts."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import price as policies
from api_ext.schemas import price as schemas

_PRICE = validation.AnswerReader(schemas.ITEM, 'id')


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List prices of all hosts; only operators see names of hosts."""
    project, audience = asked.caller.project_id, 'member'
    asked.caller.require(policies.LIST, project_id=project)
    if host_facts.sees_hosts(asked):
        audience = 'operator'
    return _prices(asked, None, audience)


def past_prices(asked: http_request.CallerRequest) -> http_request.Answer:
    """List past prices of a host."""
    return _prices(asked, asked.names['host'], 'operator')


def _prices(
    asked: http_request.CallerRequest, host: str | None, audience: str
) -> http_request.Answer:
    said = service.call(
        asked,
        'list_prices',
        name=host,
        marker=asked.query.get('marker'),
        limit=service.limit(asked),
        project=asked.caller.project_id,
        audience=audience,
    )
    return service.page(asked, said, 'prices', 'id', _PRICE)
