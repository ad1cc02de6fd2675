# SPDX-License-Identifier: Apache-2.0

"""Schemas of limits of accounts."""

from api_ext.schemas import dry_run
from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url

_SPAN: parts.Schema = {
    'type': ['number', 'null'],
    'exclusiveMinimum': 0,
    'maximum': 1e9,
    'description': 'Seconds; null for the value of the file',
}

_RESOURCE_CLASS: parts.Schema = {'pattern': patterns.RESOURCE_CLASS}


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
                'description': 'Time zone, such as Europe/Zurich; default UTC',
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
        'description': 'Unit-hours per period; null for the value of the file',
    },
    'funds': {
        'type': ['number', 'null'],
        'minimum': 0,
        'maximum': 1e12,
        'description': 'Currency that it may ever spend; null for the value '
        'of the file',
    },
    'ceiling': _amounts('Largest amount of it and all accounts below it'),
    'nominal': _amounts(
        'Nominal quota of its own, without that of accounts below it'
    ),
    'borrowing_limit': _amounts(
        'Largest amount that it and accounts below it may borrow'
    ),
    'lending_limit': _amounts('Largest amount that it may lend'),
    'windows': {
        **_WINDOWS,
        'type': ['array', 'null'],
        'description': 'Times in which requests start; null for the value of '
        'the file',
    },
}

ITEM = parts.record(
    {
        'account': parts.TEXT,
        'parent': parts.describe(
            parts.MAYBE_TEXT,
            'Parent account; null at the top, and for the own project without '
            '``all_projects=true``: only operators see names of groups',
        ),
        'time_limit': parts.describe(
            parts.MAYBE_NUMBER,
            'Seconds that servers may run; null without a limit of its own',
        ),
        'longest_wait': parts.describe(
            parts.MAYBE_NUMBER,
            'Seconds that builds may wait; null without a limit of its own',
        ),
        'budget': parts.describe(
            parts.MAYBE_NUMBER,
            'Unit-hours that it and all accounts below it may use in a '
            'period; null without a budget of its own',
        ),
        'budget_used': parts.describe(
            parts.MAYBE_NUMBER,
            'Unit-hours used in this period, as of the last charge, at most a '
            'minute ago; null without a budget',
        ),
        'budget_committed': parts.describe(
            parts.MAYBE_NUMBER,
            'Unit-hours that running servers will use until their time limit, '
            'or until the end of the period',
        ),
        'budget_left': parts.describe(
            parts.MAYBE_NUMBER,
            'Remaining unit-hours, with which requests can start; never below '
            '0',
        ),
        'budget_until': parts.describe(
            parts.MAYBE_TEXT, 'When the next period begins'
        ),
        'funds': parts.describe(
            parts.MAYBE_NUMBER,
            'Currency that it and all accounts below it may ever spend for '
            'their servers; null without a limit',
        ),
        'funds_left': parts.describe(
            parts.MAYBE_NUMBER, 'Remaining ``funds``, never below 0'
        ),
        'ceiling': parts.describe(
            parts.NUMBERS,
            'Largest amount of it and all accounts below it, by resource '
            'class of Placement',
        ),
        'nominal': parts.describe(
            parts.NUMBERS,
            'Nominal quota of its own, without that of accounts below it',
        ),
        'borrowing_limit': parts.describe(
            parts.NUMBERS,
            'Largest amount that it and all accounts below it may borrow; '
            'other classes have no limit',
        ),
        'lending_limit': parts.describe(
            parts.NUMBERS,
            'Largest part of their nominal quota that they may lend',
        ),
        'windows': parts.describe(
            _WINDOWS,
            'Times in which requests start; empty if they may start at any '
            'time',
        ),
        'opens_at': parts.describe(
            parts.MAYBE_TEXT,
            'When the next window begins; null during a window, and without '
            'windows',
        ),
        'fault': {
            **parts.TEXT,
            'description': 'Why a setting cannot be used; nothing below the '
            'account starts until it is set again',
        },
    },
    optional=('fault',),
    since={'budget_used': '1.8', 'budget_committed': '1.8'},
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
        {'account': parts.ACCOUNT, **_LIMITED, 'dry_run': dry_run.ASKED},
        optional=(*_LIMITED, 'dry_run'),
    ),
    'anyOf': [{'required': [name]} for name in _LIMITED],
}

DONE = parts.record(
    {
        'account': parts.ACCOUNT,
        **_LIMITED,
        'dry_run': parts.describe(
            dry_run.ITEM, 'With ``dry_run``: nothing was set'
        ),
    },
    optional=(*_LIMITED, 'dry_run'),
)
