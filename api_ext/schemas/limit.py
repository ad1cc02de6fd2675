# SPDX-License-Identifier: Apache-2.0

"""Limits of accounts."""

from api_ext.schemas import parts
from api_ext.schemas import url

_SPAN: parts.Schema = {
    'type': ['number', 'null'],
    'exclusiveMinimum': 0,
    'maximum': 1e9,
    'description': 'Seconds; null for what the file says',
}

_RESOURCE_CLASS: parts.Schema = {'pattern': '^[A-Z0-9_]{1,255}$'}


def _amounts(what: str) -> parts.Schema:
    return {
        'type': ['object', 'null'],
        'propertyNames': _RESOURCE_CLASS,
        'additionalProperties': {
            'type': 'integer',
            'minimum': 0,
            'maximum': 10**15,
        },
        'maxProperties': 100,
        'description': f'{what}, by resource class; null for what the file'
        ' says',
    }


_WINDOWS: parts.Schema = {
    'type': 'array',
    'maxItems': 100,
    'items': parts.record(
        {
            'begins': {
                'type': 'string',
                'maxLength': 255,
                'description': 'A cron line: minute, hour, day of the month,'
                ' month, day of the week',
            },
            'lasts': {
                'type': 'number',
                'exclusiveMinimum': 0,
                'maximum': 1e9,
                'description': 'Seconds',
            },
            'zone': {
                'type': 'string',
                'maxLength': 255,
                'description': 'Time zone, such as Europe/Zurich; else UTC',
            },
        },
        optional=('zone',),
    ),
}

_LIMITED = {
    'time_limit': _SPAN,
    'longest_wait': _SPAN,
    'budget': {
        'type': ['number', 'null'],
        'minimum': 0,
        'maximum': 1e12,
        'description': 'Unit-hours of a period; null for what the file says',
    },
    'funds': {
        'type': ['number', 'null'],
        'minimum': 0,
        'maximum': 1e12,
        'description': 'Currency that it may ever spend; null for what the'
        ' file says',
    },
    'ceiling': _amounts('Most that all below it may have at once'),
    'nominal': _amounts(
        'Nominal quota of its own, without that of accounts below it'
    ),
    'borrowing_limit': _amounts('Most that all below it may use beyond'),
    'lending_limit': _amounts('Most that others may use of what it owns'),
    'windows': {
        **_WINDOWS,
        'type': ['array', 'null'],
        'description': 'Times in which requests start; null for what the'
        ' file says',
    },
}

ITEM = parts.record(
    {
        'account': parts.TEXT,
        'parent': parts.MAYBE_TEXT,
        'time_limit': parts.MAYBE_NUMBER,
        'longest_wait': parts.MAYBE_NUMBER,
        'budget': parts.MAYBE_NUMBER,
        'budget_left': parts.MAYBE_NUMBER,
        'budget_until': parts.MAYBE_TEXT,
        'funds': parts.MAYBE_NUMBER,
        'funds_left': parts.MAYBE_NUMBER,
        'ceiling': parts.NUMBERS,
        'nominal': parts.NUMBERS,
        'borrowing_limit': parts.NUMBERS,
        'lending_limit': parts.NUMBERS,
        'windows': _WINDOWS,
        'opens_at': parts.MAYBE_TEXT,
        'fault': {
            **parts.TEXT,
            'description': 'Why something set of it cannot be used; nothing'
            ' below it starts until it is set again',
        },
    },
    optional=('fault',),
)

LIST = parts.record(
    {
        'limits': {'type': 'array', 'items': ITEM},
        'limits_links': parts.LINKS,
    },
    optional=('limits_links',),
)

QUERY = url.project_listing(url.NAME_MARKER)

SET: parts.Schema = {
    **parts.record(
        {'account': parts.ACCOUNT, **_LIMITED}, optional=tuple(_LIMITED)
    ),
    'minProperties': 2,
}
