# SPDX-License-Identifier: Apache-2.0

"""Handler of waits of requests."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import request
from api_ext.handlers import service
from api_ext.schemas import wait as schemas

_WAIT = validation.AnswerReader(schemas.ITEM, 'name')


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List percentiles of waits of the caller's project, or of all
    projects.
    """
    project, query = (
        request.permitted_project(caller_request),
        caller_request.query,
    )
    more = {'by': query.get('by', schemas.GROUP_KEYS[0])}
    if 'since' in query:
        more['since'] = request.parse_time_s(query['since'])
    said = service.call_page(caller_request, 'list_waits', project, **more)
    return service.page(caller_request, said, 'waits', 'name', _WAIT)
