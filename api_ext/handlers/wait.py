# SPDX-License-Identifier: Apache-2.0

"""Handler of waits of requests."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import request
from api_ext.handlers import service
from api_ext.schemas import wait as schemas

_WAIT = validation.AnswerReader(schemas.ITEM, 'name')


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List percentiles of waits of the caller's project, or of all."""
    project, query = request.whose(asked), asked.query
    more = {'by': query.get('by', schemas.BY[0])}
    if 'since' in query:
        more['since'] = request.seconds(query['since'])
    said = service.call_page(asked, 'list_waits', project, **more)
    return service.page(asked, said, 'waits', 'name', _WAIT)
