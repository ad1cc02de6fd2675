# SPDX-License-Identifier: Apache-2.0

"""Schemas of the cloud's capacity and use."""

from api_ext.schemas import parts

_CALIBRATED: parts.Schema = {
    **parts.record(
        {
            'count': parts.describe(
                parts.COUNT,
                'Started requests that had an estimate, the last 500 at most',
            ),
            'by_p50': parts.describe(
                parts.NUMBER,
                'Part of them that started by their first ``p50``',
            ),
            'by_p90': parts.describe(
                parts.NUMBER,
                'Part of them that started by their first ``p90``',
            ),
            'off_s': parts.describe(
                parts.NUMBER,
                'Median of the seconds from ``p50`` to the start',
            ),
            'late_s': parts.describe(
                parts.NUMBER,
                'Ninth decile of the seconds from ``p90`` to the start; below '
                '0 if the start was earlier',
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
                    'Servers of the flavor for which hosts have room, by'
                    ' vCPUs, memory and disk; extra specs and limits of the'
                    ' project do not count',
                ),
                'zones': parts.describe(
                    {'type': 'object', 'additionalProperties': parts.COUNT},
                    'The same by availability zone, also where it is 0',
                ),
            },
            since={'zones': '1.8'},
        ),
    }
)

SHOW = parts.record({'capacity': ITEM})
