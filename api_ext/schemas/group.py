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
            'Currency per CPU-hour for the whole group',
        ),
        'count': parts.describe(
            parts.COUNT,
            'Number of servers that share the rate. With more servers, each '
            'gets a smaller part',
        ),
        'servers_count': parts.describe(
            parts.COUNT, 'Number of servers in the group at the last cycle'
        ),
        'server_rate': parts.describe(
            parts.MAYBE_NUMBER,
            'Present rate of each server; null without servers. Servers whose '
            'owner has no funds left have a lower rate',
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

QUERY = url.project_list_query(url.NAME_MARKER)

SHOW = parts.record({'group': {**ITEM, 'type': ['object', 'null']}})

_PAID: dict[str, parts.Schema] = {
    'name': {'type': 'string', 'pattern': patterns.GROUP},
    'project_id': {
        'type': 'string',
        'pattern': patterns.PROJECT,
        'description': 'ID of the project; by default the project of the '
        'token',
    },
    'rate': {
        'type': 'number',
        'minimum': 0.001,
        'maximum': 1e6,
        'description': 'Currency per CPU-hour for the whole group',
    },
    'count': {
        'type': 'integer',
        'minimum': 1,
        'maximum': 100_000,
        'description': 'Number of servers that share the rate',
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
                'description': 'Currency per CPU-hour for the whole group; '
                'null deletes the group',
            },
        },
        optional=('project_id', 'rate', 'count'),
    ),
    'anyOf': [{'required': ['rate']}, {'required': ['count']}],
}
