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
            "Sum of the rates of the host's servers. If all want more than "
            "they get, a server gets the part rate / price of the host",
        ),
        'capacity': parts.describe(
            parts.NUMBER,
            'Amount of the class on the host; a rate buys most where price / '
            'capacity is lowest',
        ),
        'at': parts.describe(
            parts.TEXT,
            'Since when a past price holds; when a present price was seen',
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
