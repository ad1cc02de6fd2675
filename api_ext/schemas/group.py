# SPDX-License-Identifier: Apache-2.0

"""Schemas of groups with spending rates."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

ITEM = parts.record(
    {
        'id': parts.TEXT,
        'name': parts.TEXT,
        'project_id': parts.TEXT,
        'rate': parts.describe(
            parts.NUMBER,
            'Currency for a CPU-hour, of all servers of the group together',
        ),
        'count': parts.describe(
            parts.COUNT,
            'Servers that it is for. If there are more, each has less',
        ),
        'servers_count': parts.describe(
            parts.COUNT, 'Servers that are in it, as of the last cycle'
        ),
        'server_rate': parts.describe(
            parts.MAYBE_NUMBER,
            'Rate in force of each of them; null if there are none. '
            'If the funds of the owners of some are empty, it is that '
            'of the others',
        ),
    }
)

LIST = parts.record(
    {
        'groups': {'type': 'array', 'items': ITEM},
        'groups_links': parts.LINKS,
    },
    optional=('groups_links',),
)

QUERY = url.project_listing(url.NAME_MARKER)

SHOW = parts.record({'group': {**ITEM, 'type': ['object', 'null']}})

_PAID: dict[str, parts.Schema] = {
    'name': {'type': 'string', 'pattern': patterns.GROUP},
    'project_id': {
        'type': 'string',
        'pattern': patterns.PROJECT,
        'description': 'If it is not that of the token',
    },
    'rate': {
        'type': 'number',
        'minimum': 0.001,
        'maximum': 1e6,
        'description': 'Currency for a CPU-hour, of all its servers together',
    },
    'count': {
        'type': 'integer',
        'minimum': 1,
        'maximum': 100_000,
        'description': 'Servers that the rate is for',
    },
}

CREATE = parts.record(_PAID, optional=('project_id', 'count'))

SET: parts.Schema = {
    **parts.record(
        {
            **_PAID,
            'rate': {
                **_PAID['rate'],
                'type': ['number', 'null'],
                'description': 'null to take the group away',
            },
        },
        optional=('project_id', 'rate', 'count'),
    ),
    'anyOf': [{'required': ['rate']}, {'required': ['count']}],
}
