# SPDX-License-Identifier: Apache-2.0

"""Schemas of hosts that move between batch system and cloud."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

_MOST = 10_000

_BALANCE: parts.Schema = {
    **parts.record(
        {
            'capacity': parts.NUMBER,
            'used': parts.NUMBER,
            'wanted': parts.describe(
                parts.NUMBER, 'Cores that all waiting work needs'
            ),
            'overdue': parts.describe(
                parts.NUMBER,
                'Cores that work needs that waits longer than ``patience``',
            ),
            'unplaced': parts.describe(
                parts.NUMBER,
                'Cores that overdue work needs that fits on no single host',
            ),
        }
    ),
    'type': ['object', 'null'],
}

BORDER = parts.record(
    {
        'seen_at': parts.TEXT,
        'target': parts.describe(
            parts.MAYBE_COUNT,
            'Number of hosts for the cloud, set by an operator; null if '
            'calendar and demand decide',
        ),
        'states': {'type': 'object', 'additionalProperties': parts.COUNT},
        'batch': _BALANCE,
        'cloud': _BALANCE,
        'groups': parts.records(
            {
                'account': parts.TEXT,
                'batch_account': parts.TEXT,
                'pledge': parts.describe(
                    parts.NUMBER,
                    'Part of batch system and cloud that is pledged to the '
                    'group, 0 to 1',
                ),
                'part': parts.describe(
                    parts.NUMBER,
                    'Part of the use of all groups that is by this group, 0 '
                    'to 1',
                ),
                'used': parts.record(
                    {'batch': parts.NUMBER, 'cloud': parts.NUMBER}
                ),
                'batch_share': parts.describe(
                    parts.COUNT,
                    'Share of the group in the batch system, as adjusted',
                ),
                'batch_share_found': parts.describe(
                    parts.COUNT,
                    'Share of the group in the batch system before the '
                    'first adjustment',
                ),
            }
        ),
        'faults': parts.describe(parts.TEXTS, 'Errors, as sentences'),
    }
)
SHOW_BORDER = parts.record({'partition': BORDER})

_PLACE: parts.Schema = {
    **parts.record(
        {
            'open': parts.BOOLEAN,
            'up': parts.BOOLEAN,
            'reason': parts.TEXT,
            'work_count': parts.COUNT,
            'used_cores': parts.NUMBER,
        }
    ),
    'type': ['object', 'null'],
}

_HOST: parts.Schema = {
    'name': parts.TEXT,
    'batch_name': parts.TEXT,
    'cloud_name': parts.TEXT,
    'cores': parts.NUMBER,
    'fixed': parts.BOOLEAN,
    'state': parts.TEXT,
    'bound_for': parts.MAYBE_TEXT,
    'since': parts.TEXT,
    'until': parts.MAYBE_TEXT,
    'cause': parts.describe(
        parts.MAYBE_TEXT,
        'Cause of the last step of the host; ``explanation`` has the sentence',
    ),
    'explanation': parts.TEXT,
    'batch': _PLACE,
    'cloud': _PLACE,
}

HOST = parts.record(_HOST)
WORK = parts.records(
    {
        'name': parts.describe(
            parts.TEXT, 'Number of a job, or UUID of a server'
        ),
        'cores': parts.NUMBER,
        'gone_at': parts.describe(
            parts.MAYBE_TEXT,
            'Latest time at which the job or server ends or leaves; null if '
            'unknown',
        ),
        'way': parts.describe(
            parts.TEXT,
            '``ends`` (at its end), ``moves`` (live migration) or ``yields`` '
            '(eviction)',
        ),
    }
)

HOST_IN_FULL = parts.record(
    {
        **_HOST,
        'work': WORK,
        'history': parts.records(
            {
                'at': parts.TEXT,
                'event': parts.TEXT,
                'state': parts.TEXT,
                'cause': parts.TEXT,
                'explanation': parts.TEXT,
            }
        ),
    }
)
LIST = parts.record(
    {
        'hosts': {'type': 'array', 'items': HOST},
        'hosts_links': parts.LINKS,
    },
    optional=('hosts_links',),
)
SHOW = parts.record({'host': HOST_IN_FULL})

QUERY = parts.record(
    {
        'limit': {
            'type': 'integer',
            'minimum': 1,
            'maximum': url.LARGEST_LIMIT,
        },
        'marker': {'type': 'string', 'pattern': patterns.HOST},
    },
    optional=('limit', 'marker'),
)

ACTION: parts.Schema = {
    'oneOf': [
        parts.record({each: {'type': 'null'}}) for each in ('move', 'cancel')
    ]
}

TARGET = parts.record(
    {
        'target': {
            'type': ['integer', 'null'],
            'minimum': 0,
            'maximum': _MOST,
            'description': 'Number of hosts for the cloud; null if calendar '
            'and demand decide',
        }
    }
)
