# SPDX-License-Identifier: Apache-2.0

"""Plans of moves."""

from api_ext.schemas import parts
from api_ext.schemas import url

_OUTCOME: parts.Schema = parts.record(
    {
        'hosts_before': parts.COUNT,
        'hosts_after': parts.COUNT,
        'spread_before': parts.NUMBER,
        'spread_after': parts.NUMBER,
        'emptied': parts.COUNT,
        'moves': parts.COUNT,
        'memory_mb': parts.COUNT,
        'served': parts.COUNT,
    }
)

_PLAN: parts.Schema = {
    'uuid': parts.TEXT,
    'goal': parts.TEXT,
    'subject': parts.TEXT,
    'state': parts.TEXT,
    'cause': parts.TEXT,
    'explanation': parts.TEXT,
    'made_at': parts.TEXT,
    'since': parts.TEXT,
    'until': parts.TEXT,
    'moves_count': parts.COUNT,
    'ended_count': parts.COUNT,
    'empties': parts.TEXTS,
    'stays_count': parts.COUNT,
    'promised': _OUTCOME,
    'won': {**_OUTCOME, 'type': ['object', 'null']},
}

PLAN = parts.record(_PLAN, optional=('stays_count',))
PLAN_IN_FULL = parts.record(
    {
        **_PLAN,
        'stays': parts.records(
            {
                'server': parts.TEXT,
                'name': parts.TEXT,
                'cause': parts.TEXT,
                'explanation': parts.TEXT,
            }
        ),
        'moves': parts.records(
            {
                'server': parts.TEXT,
                'source': parts.TEXT,
                'target': parts.TEXT,
                'wave': parts.COUNT,
                'cost_mb': parts.COUNT,
                'state': parts.TEXT,
                'cause': parts.MAYBE_TEXT,
                'explanation': parts.TEXT,
                'asked_at': parts.MAYBE_TEXT,
                'ended_at': parts.MAYBE_TEXT,
                'sent_mb': parts.MAYBE_COUNT,
            }
        ),
    },
    optional=('stays_count', 'stays'),
)
LIST = parts.record(
    {
        'plans': {'type': 'array', 'items': PLAN},
        'plans_links': parts.LINKS,
    },
    optional=('plans_links',),
)
SHOW = parts.record({'plan': PLAN_IN_FULL})

QUERY = parts.record(
    {
        'limit': {
            'type': 'integer',
            'minimum': 1,
            'maximum': url.LARGEST_LIMIT,
        },
        'marker': {'type': 'string', 'pattern': url.UUID},
    },
    optional=('limit', 'marker'),
)

CREATE = parts.record(
    {
        'empty': {
            'type': 'string',
            'pattern': url.HOST,
            'description': 'Name of the host that is to be emptied',
        }
    }
)

ACTION: parts.Schema = {
    'oneOf': [
        parts.record({each: {'type': 'null'}}) for each in ('approve', 'stop')
    ]
}
