# SPDX-License-Identifier: Apache-2.0

"""Schemas of prices of hosts."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'id': parts.TEXT,
        'host': parts.TEXT,
        'resource_class': parts.TEXT,
        'price': parts.describe(
            parts.NUMBER,
            "Sum of the rates of the host's servers. While all want "
            "what they can get, each has its rate / price of the host",
        ),
        'capacity': parts.describe(
            parts.NUMBER,
            'Amount of the class on the host; price / capacity says '
            'where a rate buys most',
        ),
        'at': parts.describe(
            parts.TEXT, 'Since when; of the list, when it was seen'
        ),
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
