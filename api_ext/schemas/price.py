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
            "Sum of the spending rates of the host's servers. If all of them "
            'want more than they get, a server gets the part rate / price of '
            'the host',
        ),
        'capacity': parts.describe(
            parts.NUMBER,
            'Amount of the class on the host; a rate buys most on the host '
            'with the lowest price / capacity',
        ),
        'at': parts.describe(
            parts.TEXT,
            'Time since which a past price applied; time at which a present '
            'price was read',
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
