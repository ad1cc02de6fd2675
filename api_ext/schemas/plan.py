# SPDX-License-Identifier: Apache-2.0

"""Schemas of migration plans."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

_OUTCOME: parts.Schema = parts.record(
    {
        'hosts_before': parts.describe(
            parts.COUNT, 'Number of hosts in use before the plan'
        ),
        'hosts_after': parts.COUNT,
        'spread_before': parts.describe(
            parts.NUMBER,
            'Difference between the fullest host and the average, as a part '
            'of a host, in the resource class with the largest difference',
        ),
        'spread_after': parts.NUMBER,
        'emptied': parts.describe(
            parts.COUNT, 'Number of hosts that become empty'
        ),
        'moves': parts.describe(parts.COUNT, 'Number of servers that move'),
        'memory_mb': parts.describe(
            parts.COUNT, 'Memory that the migrations send, MB'
        ),
        'served': parts.describe(
            parts.COUNT, 'Number of requests that can start'
        ),
    }
)

_PLAN: parts.Schema = {
    'uuid': parts.TEXT,
    'goal': parts.TEXT,
    'subject': parts.describe(
        parts.TEXT, 'The request, owner or host that the plan serves'
    ),
    'state': parts.describe(
        parts.TEXT,
        '``proposed``, ``approved``, ``running``, ``partial``, '
        '``done``, ``stopped``, ``expired`` or ``failed``',
    ),
    'cause': parts.describe(
        parts.TEXT,
        'Cause of the state: ``found``, ``operator``, ``auto``, '
        '``all_ended``, ``some_stay``, ``not_a_goal``, ``late``, ``no_use``, '
        '``replaced`` or ``many_failed``',
    ),
    'explanation': parts.TEXT,
    'made_at': parts.TEXT,
    'since': parts.TEXT,
    'until': parts.TEXT,
    'moves_count': parts.COUNT,
    'ended_count': parts.COUNT,
    'empties': parts.TEXTS,
    'stays_count': parts.describe(
        parts.COUNT,
        'Number of servers that stay on the host that the plan empties',
    ),
    'promised': _OUTCOME,
    'won': {**_OUTCOME, 'type': ['object', 'null']},
}

STAYS = parts.records(
    {
        'server': parts.TEXT,
        'name': parts.TEXT,
        'cause': parts.describe(
            parts.TEXT,
            '``nowhere``, ``together``, ``locked``, ``busy`` or ``elsewhere``',
        ),
        'explanation': parts.TEXT,
    }
)

MOVES = parts.records(
    {
        'server': parts.TEXT,
        'source': parts.TEXT,
        'target': parts.TEXT,
        'wave': parts.describe(
            parts.COUNT,
            'Number of the wave; moves of one wave may run at the same time',
        ),
        'cost_mb': parts.describe(parts.COUNT, 'Estimated memory to send, MB'),
        'state': parts.describe(
            parts.TEXT,
            '``pending``, ``moving``, ``moved``, ``skipped`` or ``failed``',
        ),
        'cause': parts.describe(
            parts.MAYBE_TEXT,
            'null at first; ``asked``, ``not_asked``, ``arrived``, '
            '``server_gone``, ``elsewhere``, ``busy``, ``locked``, '
            '``host_closed``, ``no_room``, ``in_vain``, '
            '``plan_ended``, ``refused``, ``migration_failed`` or '
            '``cancelled``',
        ),
        'explanation': parts.TEXT,
        'asked_at': parts.MAYBE_TEXT,
        'ended_at': parts.MAYBE_TEXT,
        'sent_mb': parts.describe(
            parts.MAYBE_COUNT,
            'Memory that was sent according to Nova, MB; null if unknown',
        ),
    }
)

PLAN = parts.record(_PLAN, optional=('stays_count',))
PLAN_IN_FULL = parts.record(
    {
        **_PLAN,
        'stays': STAYS,
        'moves': MOVES,
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
        'marker': {'type': 'string', 'pattern': patterns.UUID},
    },
    optional=('limit', 'marker'),
)

CREATE = parts.record(
    {
        'empty': {
            'type': 'string',
            'pattern': patterns.HOST,
            'description': 'Name of the host to empty',
        }
    }
)

ACTION: parts.Schema = {
    'oneOf': [
        parts.record({each: {'type': 'null'}}) for each in ('approve', 'stop')
    ]
}
