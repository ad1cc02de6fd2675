# SPDX-License-Identifier: Apache-2.0

"""Prices of hosts."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'id': parts.TEXT,
        'host': parts.TEXT,
        'resource_class': parts.TEXT,
        'price': parts.NUMBER,
        'capacity': parts.NUMBER,
        'at': parts.TEXT,
    }
)

QUERY = parts.record(
    {
        'limit': {
            'type': 'integer',
            'minimum': 1,
            'maximum': url.LARGEST_LIMIT,
        },
        'marker': url.NAME_MARKER,
    },
    optional=('limit', 'marker'),
)

LIST = parts.record(
    {
        'prices': {'type': 'array', 'items': ITEM},
        'prices_links': parts.LINKS,
    },
    optional=('prices_links',),
)
