# SPDX-License-Identifier: Apache-2.0

"""Handler of the cloud's capacity and use."""

from api_ext import http_request
from api_ext import validation
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.schemas import capacity as schemas

_CAPACITY = validation.AnswerReader(schemas.ITEM, 'classes')


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show capacity and use of the cloud."""
    said = service.call(
        asked,
        'get_capacity',
        project=asked.caller.project_id,
        audience=host_facts.audience(asked),
    )
    return {'capacity': service.checked(said, _CAPACITY)}
