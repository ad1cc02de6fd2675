# SPDX-License-Identifier: Apache-2.0

"""Schema of the state of the cluster service."""

from api_ext.schemas import parts

_COUNTS: parts.Schema = {'type': 'object', 'additionalProperties': parts.COUNT}

ITEM = parts.record(
    {
        'leader': parts.TEXT,
        'epoch': parts.COUNT,
        'leads_since': parts.describe(
            parts.TEXT, 'Time at which this process became the leader'
        ),
        'seen_at': parts.TEXT,
        'agents': parts.describe(
            _COUNTS,
            'Number of agents by activity: steering (they change weights), '
            'observing (``enforce`` is off), paused or silent',
        ),
        'order': parts.describe(parts.TEXT, 'Name of the order in use'),
        'order_description': parts.describe(
            parts.TEXT, 'Description of that order, in a sentence'
        ),
        'hosts_count': parts.describe(
            parts.COUNT, 'Number of hosts on which servers may start'
        ),
        'waiting_count': parts.COUNT,
        'waiting': parts.records(
            {
                'project_id': parts.TEXT,
                'reason': parts.TEXT,
                'explanation': parts.describe(
                    parts.TEXT, 'Reason for the waits, in words'
                ),
                'count': parts.COUNT,
            },
            since={'explanation': '1.8'},
        ),
        'shares': parts.describe(
            parts.records(
                {
                    'account': parts.TEXT,
                    'normalised_share': parts.NUMBER,
                    'used_part': parts.NUMBER,
                    'fair_share': parts.NUMBER,
                }
            ),
            'The ten projects with the largest use: the part of the cloud '
            'that each used, in its dominant resource class, and the part '
            'that it is entitled to by its share',
        ),
        'leaving': parts.describe(
            _COUNTS, 'Number of servers that are being evicted, by cause'
        ),
        'plans': parts.describe(
            parts.records(
                {'uuid': parts.TEXT, 'goal': parts.TEXT, 'state': parts.TEXT}
            ),
            'Migration plans that have not ended',
        ),
        'border': parts.describe(
            _COUNTS,
            'Number of hosts that move between batch system and cloud, by '
            'state',
        ),
        'warnings': parts.describe(
            parts.TEXTS,
            'Warnings: inputs in quarantine, with the reason; agents and '
            'servers that do not answer; late cycles; findings of ``upgrade '
            'check`` on the host of the leader, at most five minutes old',
        ),
        'advice': parts.describe(parts.TEXTS, 'Next steps for an operator'),
    },
    since=dict.fromkeys(('order', 'order_description'), '1.8'),
)

SHOW = parts.record({'status': ITEM})
