# SPDX-License-Identifier: Apache-2.0

"""Requests that wait."""

from api_ext.schemas import parts
from api_ext.schemas import url

MOST = 1000
"""Requests of one page, whatever is asked for."""

_ESTIMATE: parts.Schema = {
    **parts.record({'p50': parts.TEXT, 'p90': parts.TEXT}),
    'type': ['object', 'null'],
}

_RISK: parts.Schema = {
    'server': parts.TEXT,
    'state': parts.TEXT,
    'since': parts.TEXT,
    'reason': parts.TEXT,
    'explanation': parts.TEXT,
    'subject': parts.TEXT,
    'numbers': parts.NUMBERS,
}

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.TEXT,
        'user_id': parts.TEXT,
        'origin': {'type': 'string', 'enum': ['build', 'unshelve']},
        'preemptible': {'type': 'boolean'},
        'preemption_action': parts.MAYBE_TEXT,
        'servers': parts.TEXTS,
        'resources': parts.NUMBERS,
        'state': parts.TEXT,
        'reason': parts.TEXT,
        'explanation': parts.TEXT,
        'subject': parts.TEXT,
        'numbers': parts.NUMBERS,
        'summary': parts.TEXTS,
        'position': parts.MAYBE_COUNT,
        'factors': parts.NUMBERS,
        'reserved_at': parts.MAYBE_TEXT,
        'estimated_start': _ESTIMATE,
        'asked_at': parts.TEXT,
        'since': parts.TEXT,
        'expires_at': parts.MAYBE_TEXT,
        'time_limit': parts.MAYBE_NUMBER,
        'extended': parts.NUMBER,
        'ends_at': parts.MAYBE_TEXT,
        'leaving': parts.records(parts.LEAVE),
        'at_risk': parts.records(_RISK),
        'held_by': {'enum': ['operator', 'owner', None]},
        'first': parts.TRUTH,
    },
    optional=('held_by', 'first'),
)

LIST = parts.record(
    {
        'requests': {'type': 'array', 'items': ITEM},
        'requests_links': parts.LINKS,
    },
    optional=('requests_links',),
)

SHOW = parts.record({'request': ITEM})

_UUIDS = url.project_listing(url.UUID_MARKER)

QUERY: parts.Schema = {
    **_UUIDS,
    'properties': {**_UUIDS['properties'], 'preemptible': url.FLAG},
}

_EXTENSION = parts.record(
    {'seconds': {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1e9}}
)

_ORDER = {'type': ['null', 'object'], 'additionalProperties': False}

ACTIONS = ('cancel', 'release', 'first', 'unfirst', 'hold', 'unhold')

_RELEASE: parts.Schema = {
    'type': ['null', 'object'],
    'properties': {
        'without_room': {
            'type': 'boolean',
            'description': 'Nova looks for room itself, and ends the request'
            ' if it finds none',
        },
    },
    'additionalProperties': False,
}

_HOLD: parts.Schema = {
    'type': ['null', 'object'],
    'properties': {
        'why': {
            'type': 'string',
            'minLength': 1,
            'maxLength': 200,
            'pattern': r'^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$',
            'description': 'Text for the owners of the request',
        },
    },
    'additionalProperties': False,
}

ACTION = {
    'type': 'object',
    'properties': {
        **dict.fromkeys(ACTIONS, _ORDER),
        'release': _RELEASE,
        'hold': _HOLD,
        'extend': _EXTENSION,
    },
    'additionalProperties': False,
    'minProperties': 1,
    'maxProperties': 1,
}
