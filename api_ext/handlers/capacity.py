# SPDX-License-Identifier: Apache-2.0

"""Handler of the cloud's capacity and use."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.schemas import capacity as schemas

_CAPACITY = validation.AnswerReader(schemas.ITEM, 'classes')


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the capacity and the use of the cloud."""
    said = service.call(
        caller_request,
        'get_capacity',
        project=caller_request.caller.project_id,
        audience=host_facts.audience(caller_request),
    )
    return {'capacity': service.parse_fields(said, _CAPACITY)}
