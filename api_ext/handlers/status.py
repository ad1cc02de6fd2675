# SPDX-License-Identifier: Apache-2.0

"""Handler of the state of the cluster service and the agents."""

import collections
from collections.abc import Mapping
from typing import Any

from api_ext import agents as agents_module
from api_ext import faults
from api_ext import http_request
from api_ext import validation
from api_ext.handlers import service
from api_ext.schemas import status as schemas
from nova_fairness.model import wording

_STATUS = validation.AnswerReader(schemas.ITEM, 'leader')

_NAMED = 10
"""Largest number of silent agents whose names are in warnings."""

_MORE_SILENT = 'more agent does not answer', 'more agents do not answer'

_LOOK = 'Check the agents: openstack fairness host list'


def show(caller_request: http_request.CallerRequest) -> http_request.Answer:
    """Return the state of the cluster service and of the agents."""
    said = service.call(caller_request, 'get_status')
    found = service.parse_fields(
        service.required_field(said, 'status'), _STATUS
    )
    counts, warnings = _agents(caller_request)
    return {
        'status': {
            **found,
            'agents': counts,
            'warnings': [*found.get('warnings', ()), *warnings],
            'advice': [
                *found.get('advice', ()),
                *([_LOOK] if warnings else []),
            ],
        }
    }


def _agents(
    caller_request: http_request.CallerRequest,
) -> tuple[dict[str, int], list[str]]:
    """Return the number of agents by activity, and warnings about silent
    agents.
    """
    try:
        told = caller_request.agents.query_all('get_status', _activity)
    except faults.Unavailable as error:
        return {}, [f'agents: {error}']
    counts = collections.Counter(told.by_host.values())
    if told.missing:
        counts['silent'] = len(told.missing)
    return dict(sorted(counts.items())), _silent_warnings(told)


def _activity(status: Mapping[str, Any]) -> str:
    if status['paused']:
        return 'paused'
    return 'steering' if status['enforce'] else 'observing'


def _silent_warnings(told: agents_module.AgentAnswers[str]) -> list[str]:
    missing = list(told.missing.items())
    more = len(missing) - _NAMED
    return [
        *(f'agent of host {host}: {why}' for host, why in missing[:_NAMED]),
        *([wording.counted(more, *_MORE_SILENT)] if more > 0 else []),
    ]
