# SPDX-License-Identifier: Apache-2.0

"""How full the cloud is."""

from api_ext.schemas import parts

_CALIBRATED: parts.Schema = {
    **parts.record(
        {
            'count': parts.COUNT,
            'by_p50': parts.NUMBER,
            'by_p90': parts.NUMBER,
            'off_s': parts.NUMBER,
            'late_s': parts.NUMBER,
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
                'largest': parts.COUNT,
            }
        ),
        'flavors': parts.records({'name': parts.TEXT, 'starts': parts.COUNT}),
    }
)

SHOW = parts.record({'capacity': ITEM})
