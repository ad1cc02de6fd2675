# SPDX-License-Identifier: Apache-2.0

"""Schemas of the cloud's capacity and use."""

from api_ext.schemas import parts

_CALIBRATED: parts.Schema = {
    **parts.record(
        {
            'count': parts.describe(
                parts.COUNT,
                'Requests that were told an estimate and have started, '
                'the last 500 at most',
            ),
            'by_p50': parts.describe(
                parts.NUMBER,
                'Part of them that started by the first ``p50`` that they '
                'were told',
            ),
            'by_p90': parts.describe(
                parts.NUMBER, 'Part of them that started by the first ``p90``'
            ),
            'off_s': parts.describe(
                parts.NUMBER,
                'Median of how many seconds after ``p50`` they started',
            ),
            'late_s': parts.describe(
                parts.NUMBER,
                'Ninth decile of how many seconds after ``p90`` they '
                'started; below 0 if before',
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
                    parts.COUNT, 'Most of the class that one server gets now'
                ),
            }
        ),
        'flavors': parts.records(
            {
                'name': parts.TEXT,
                'starts': parts.describe(
                    parts.COUNT,
                    'Servers of the flavor for which hosts have room, by'
                    ' vCPUs, memory and disk: neither extra specs nor what'
                    ' the project may have count',
                ),
            }
        ),
    }
)

SHOW = parts.record({'capacity': ITEM})
