# SPDX-License-Identifier: Apache-2.0

"""Schemas of hosts with an agent."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

SUMMARY = parts.record(
    {
        'name': parts.TEXT,
        'version': parts.TEXT,
        'metric': parts.TEXT,
        'policy': parts.TEXT,
        'epoch': parts.COUNT,
        'paused': parts.BOOLEAN,
        'enforce': parts.BOOLEAN,
        'refused': parts.TEXT,
        'interval_s': parts.NUMBER,
        'instances_count': parts.MAYBE_COUNT,
        'users_count': parts.MAYBE_COUNT,
        'peers_count': parts.COUNT,
        'left_out_count': parts.COUNT,
        'round': parts.MAYBE_COUNT,
        'duration_s': parts.MAYBE_NUMBER,
        'age_s': parts.MAYBE_NUMBER,
    }
)

SORT_KEYS = (
    'name',
    'metric',
    'policy',
    'paused',
    'instances_count',
    'duration_s',
)

QUERY = url.list_query(patterns.HOST, *SORT_KEYS)

LIST = parts.record(
    {
        'hosts': {'type': 'array', 'items': SUMMARY},
        'hosts_links': parts.LINKS,
        **parts.PARTIAL,
    },
    optional=('hosts_links',),
)

_SHADOW = {
    'type': ['object', 'null'],
    'properties': {
        'metric': parts.TEXT,
        'round': parts.COUNT,
        'problem': parts.TEXT,
    },
    'description': 'State of the shadow metric, which is computed and changes '
    'no weight; null if there is none; agents before 1.8 do not send it',
}

SHOW = parts.record(
    {
        'host': {
            'type': 'object',
            'properties': {
                'name': parts.TEXT,
                'metric': parts.TEXT,
                'policy': parts.TEXT,
                'paused': parts.BOOLEAN,
                'enforce': parts.BOOLEAN,
                'warning': parts.TEXT,
                'unsaved': parts.TEXTS,
                'round': {'type': ['object', 'null']},
                'peers': {'type': 'object'},
                'shadow': _SHADOW,
            },
            'required': ['name', 'metric', 'policy', 'paused', 'peers'],
        }
    }
)

_AMOUNTS = (
    'gets_cpus',
    'wants_cpus',
    'would_get_cpus',
    'change_cpus',
)

_CHANGE = {
    'type': 'object',
    'properties': {
        **dict.fromkeys(_AMOUNTS, parts.NUMBER),
        'change_spread_cpus': parts.MAYBE_NUMBER,
    },
    'required': list(_AMOUNTS),
}

_OF_METRIC = {
    'type': 'object',
    'properties': {
        'metric': parts.TEXT,
        'in_force': parts.BOOLEAN,
        'problem': parts.TEXT,
        'settled': parts.BOOLEAN,
        'rounds_count': parts.COUNT,
        'sampled_rounds_count': parts.COUNT,
        'users': {'type': 'object', 'additionalProperties': _CHANGE},
        'instances': {'type': 'array', 'items': _CHANGE},
    },
    'required': ['metric', 'problem', 'users', 'instances'],
}

PREVIEW = parts.record(
    {
        'preview': {
            'type': 'object',
            'properties': {
                'name': parts.TEXT,
                'round': parts.MAYBE_COUNT,
                'entity': parts.TEXT,
                'policy': parts.TEXT,
                'enforced': {'type': ['boolean', 'null']},
                'not_foreseen': parts.TEXTS,
                'metrics': {'type': 'array', 'items': _OF_METRIC},
            },
            'required': ['name', 'metrics'],
        }
    }
)
