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


def index(asked: http_request.CallerRequest) -> http_request.Answer:
    """List preemptions with victims or preemptors of the caller's project."""
    whose = account_access.whose(asked, policies.LIST, policies.LIST_ALL)
    marker = asked.query.get('marker')
    if marker is not None:
        _preemption(asked, marker)
    said = service.call_page(
        asked, 'list_preemptions', whose, audience=host_facts.audience(asked)
    )
    answer = service.page(asked, said, 'preemptions', 'uuid', _PREEMPTION)
    told = [_named(asked, each) for each in answer['preemptions']]
    return {**answer, 'preemptions': told}


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show a preemption, if the caller may see it."""
    return {'preemption': _preemption(asked, asked.names['uuid'].lower())}


def _preemption(
    asked: http_request.CallerRequest, uuid: str
) -> dict[str, Any]:
    """A preemption that the caller may see.

    :raises NotFound: for others, as if they did not exist.
    """
    audience = host_facts.audience(asked)
    said = service.call(
        asked,
        'get_preemption',
        uuid=uuid,
        project=None if audience == 'operator' else asked.caller.project_id,
        audience=audience,
    )
    item = service.checked(service.part(said, 'preemption'), _PREEMPTION)
    if not any(
        asked.caller.may(policies.SHOW, project_id=item[whose])
        for whose in ('project_id', 'for_project')
    ):
        raise faults.NotFound(service.UNKNOWN_PREEMPTION.format(uuid))
    return _named(asked, item)


def _named(
    asked: http_request.CallerRequest, item: Mapping[str, Any]
) -> dict[str, Any]:
    """A preemption, without names that the caller may not see."""
    rule, owner = policies.SHOW, item['project_id']
    if asked.caller.may(rule, project_id=owner):
        return dict(item)
    return {**item, 'server': None, 'project_id': None, 'user_id': None}
