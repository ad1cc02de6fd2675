# SPDX-License-Identifier: Apache-2.0

"""Handler of the state of cluster service and agents."""

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
"""Largest number of silent agents that warnings name."""

_MORE_SILENT = 'more agent does not answer', 'more agents do not answer'

_LOOK = 'Look at the agents: openstack fairness host list'


def show(asked: http_request.CallerRequest) -> http_request.Answer:
    """Show the state of the cluster service and of the agents."""
    said = service.call(asked, 'get_status')
    found = service.checked(service.part(said, 'status'), _STATUS)
    counts, warnings = _agents(asked)
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
    asked: http_request.CallerRequest,
) -> tuple[dict[str, int], list[str]]:
    """Number of agents by activity, and warnings about silent agents."""
    try:
        told = asked.agents.told('get_status', _activity)
    except faults.Unavailable as error:
        return {}, [f'agents: {error}']
    counts = collections.Counter(told.by_host.values())
    if told.missing:
        counts['silent'] = len(told.missing)
    return dict(sorted(counts.items())), _silent(told)


def _activity(status: Mapping[str, Any]) -> str:
    if status['paused']:
        return 'paused'
    return 'steering' if status['enforce'] else 'observing'


def _silent(told: agents_module.AgentAnswers[str]) -> list[str]:
    missing = list(told.missing.items())
    more = len(missing) - _NAMED
    return [
        *(f'agent of host {host}: {why}' for host, why in missing[:_NAMED]),
        *([wording.counted(more, *_MORE_SILENT)] if more > 0 else []),
    ]
