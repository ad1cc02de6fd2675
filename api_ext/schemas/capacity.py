# SPDX-License-Identifier: Apache-2.0

"""Schemas of the cloud's capacity and use."""

from api_ext.schemas import parts

_CALIBRATED: parts.Schema = {
    **parts.record(
        {
            'count': parts.describe(
                parts.COUNT,
                'Number of started requests with an estimate, at most 500',
            ),
            'by_p50': parts.describe(
                parts.NUMBER,
                'Part of these requests that started before their first '
                '``p50``, 0 to 1',
            ),
            'by_p90': parts.describe(
                parts.NUMBER,
                'Part of these requests that started before their first '
                '``p90``, 0 to 1',
            ),
            'off_s': parts.describe(
                parts.NUMBER,
                'Median of the absolute seconds between ``p50`` and the start',
            ),
            'late_s': parts.describe(
                parts.NUMBER,
                '90th percentile of the seconds from ``p90`` to the start; '
                'negative if the start was earlier',
            ),
        }
    ),
    'type': ['object', 'null'],
}

ITEM = parts.record(
    {
        'hosts_count': parts.COUNT,
        'waiting_count': parts.COUNT,
        'seen_at': parts.TEXT,
        'estimates': _CALIBRATED,
        'classes': parts.records(
            {
                'name': parts.TEXT,
                'capacity': parts.COUNT,
                'used': parts.COUNT,
                'largest': parts.describe(
                    parts.COUNT, 'Largest amount that one server can get now'
                ),
            }
        ),
        'flavors': parts.records(
            {
                'name': parts.TEXT,
                'starts': parts.describe(
                    parts.COUNT,
                    'Number of servers of the flavor for which hosts have'
                    ' enough vCPUs, memory and disk; extra specs and limits'
                    ' of the project are ignored',
                ),
                'zones': parts.describe(
                    {'type': 'object', 'additionalProperties': parts.COUNT},
                    'Number of these servers by availability zone, including'
                    ' zones with 0',
                ),
            },
            since={'zones': '1.8'},
        ),
    }
)

SHOW = parts.record({'capacity': ITEM})
