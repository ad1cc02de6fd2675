# SPDX-License-Identifier: Apache-2.0

"""Handlers of preemptions."""

from collections.abc import Mapping
from typing import Any

from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import account_access
from api_ext.handlers import host_facts
from api_ext.handlers import service
from api_ext.policies import preemption as policies
from api_ext.schemas import preemption as schemas

_PREEMPTION = validation.AnswerReader(
    schemas.ITEM, 'uuid', 'project_id', 'for_project'
)


def index(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """List preemptions with victims or preemptors of the caller's project."""
    whose = account_access.permitted_project(
        caller_request, policies.LIST, policies.LIST_ALL
    )
    marker = caller_request.query.get('marker')
    if marker is not None:
        _preemption(caller_request, marker)
    said = service.call_page(
        caller_request,
        'list_preemptions',
        whose,
        audience=host_facts.audience(caller_request),
    )
    answer = service.page(
        caller_request, said, 'preemptions', 'uuid', _PREEMPTION
    )
    told = [
        _without_hidden_names(caller_request, each)
        for each in answer['preemptions']
    ]
    return {**answer, 'preemptions': told}


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return a preemption, if the caller may see it."""
    return {
        'preemption': _preemption(
            caller_request, caller_request.names['uuid'].lower()
        )
    }


def _preemption(
    caller_request: http_request.CallerRequest, uuid: str
) -> dict[str, Any]:
    """Return a preemption that the caller may see.

    :raises NotFound: if the caller may not see it, as if it did not exist.
    """
    audience = host_facts.audience(caller_request)
    said = service.call(
        caller_request,
        'get_preemption',
        uuid=uuid,
        project=None
        if audience == 'operator'
        else caller_request.caller.project_id,
        audience=audience,
    )
    item = service.parse_fields(
        service.required_field(said, 'preemption'), _PREEMPTION
    )
    if not any(
        caller_request.caller.is_allowed(policies.SHOW, project_id=item[whose])
        for whose in ('project_id', 'for_project')
    ):
        raise faults.NotFound(service.UNKNOWN_PREEMPTION.format(uuid))
    return _without_hidden_names(caller_request, item)


def _without_hidden_names(
    caller_request: http_request.CallerRequest, item: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a preemption without the names that the caller may not see."""
    rule, owner = policies.SHOW, item['project_id']
    if caller_request.caller.is_allowed(rule, project_id=owner):
        return dict(item)
    return {**item, 'server': None, 'project_id': None, 'user_id': None}
