# SPDX-License-Identifier: Apache-2.0

"""Handlers of prices of hosts."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import price as policies
from api_ext.schemas import price as schemas

_PRICE = validation.AnswerReader(schemas.ITEM, 'id')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List the prices of all hosts; only operators see the names of hosts."""
    project, audience = caller_request.caller.project_id, 'member'
    caller_request.caller.require(policies.LIST, project_id=project)
    if host_facts.sees_hosts(caller_request):
        audience = 'operator'
    return _prices(caller_request, None, audience)


def past_prices(
    caller_request: http_request.CallerRequest,
) -> http_request.Answer:
    """List the past prices of a host."""
    return _prices(caller_request, caller_request.names['host'], 'operator')


def _prices(
    caller_request: http_request.CallerRequest, host: str | None, audience: str
) -> http_request.Answer:
    said = service.call(
        caller_request,
        'list_prices',
        name=host,
        marker=caller_request.query.get('marker'),
        limit=service.page_limit(caller_request),
        project=caller_request.caller.project_id,
        audience=audience,
    )
    return service.page(caller_request, said, 'prices', 'id', _PRICE)
