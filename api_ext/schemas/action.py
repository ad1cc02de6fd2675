# SPDX-License-Identifier: Apache-2.0

"""Schemas of actions on hosts."""

from api_ext.schemas import parts
from api_ext.schemas import patterns

_CHOICE = parts.record(
    {
        'name': {
            'type': 'string',
            'pattern': patterns.PLUGIN,
        }
    }
)
_ORDER = {
    'type': ['null', 'object'],
    'properties': {},
    'additionalProperties': False,
}

METHODS = {
    'set-metric': 'set_metric',
    'set-policy': 'set_policy',
    'pause': 'pause',
    'resume': 'resume',
    'reset': 'reset',
}
"""RPC method of agents for each action."""

CHOOSING = ('set-metric', 'set-policy')

REQUEST = {
    'type': 'object',
    'properties': {
        action: _CHOICE if action in CHOOSING else _ORDER for action in METHODS
    },
    'additionalProperties': False,
    'minProperties': 1,
    'maxProperties': 1,
}

DONE: parts.Schema = {
    'type': 'object',
    'properties': {
        'from_round': parts.COUNT,
        'epoch': parts.COUNT,
        'metric': parts.TEXT,
        'policy': parts.TEXT,
        'origin': parts.TEXT,
        'paused': parts.BOOLEAN,
        'persistent': parts.BOOLEAN,
        'problem': parts.TEXT,
        'warning': parts.TEXT,
    },
}
"""Answer of one host to an action."""

ANSWER = parts.record(
    {
        'action': {'type': 'string', 'enum': list(METHODS)},
        'hosts': {
            'type': 'array',
            'items': {
                'type': 'object',
                'properties': {'name': parts.TEXT, **DONE['properties']},
                'required': ['name', 'from_round'],
            },
        },
        'not_reached': parts.MISSING_HOSTS,
        'refused': parts.MISSING_HOSTS,
    }
)
