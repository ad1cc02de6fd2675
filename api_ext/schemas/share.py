# SPDX-License-Identifier: Apache-2.0

"""Shares of accounts."""

from api_ext.schemas import parts
from api_ext.schemas import url

ITEM = parts.record(
    {
        'name': parts.TEXT,
        'parent': parts.MAYBE_TEXT,
        'share': parts.NUMBER,
        'normalised_share': parts.NUMBER,
        'used': parts.NUMBERS,
        'fair_share': parts.NUMBER,
        'vanished': parts.TRUTH,
    }
)

LIST = parts.record(
    {
        'shares': {'type': 'array', 'items': ITEM},
        'shares_links': parts.LINKS,
    },
    optional=('shares_links',),
)

QUERY = url.project_listing(url.NAME_MARKER)

SET = parts.record(
    {
        'account': parts.ACCOUNT,
        'share': {
            'type': ['number', 'null'],
            'minimum': 0,
            'maximum': 1e9,
            'description': 'Beside its siblings; null for what the file says',
        },
    }
)
