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
    'description': 'Seconds; null restores the value in the file of shares',
}

_RESOURCE_CLASS: parts.Schema = {'pattern': patterns.RESOURCE_CLASS}


def _amounts_schema(meaning: str) -> parts.Schema:
    return {
        'type': ['object', 'null'],
        'propertyNames': _RESOURCE_CLASS,
        'additionalProperties': {
            'type': 'integer',
            'minimum': 0,
            'maximum': 10**15,
        },
        'maxProperties': 100,
        'description': f'{meaning}, by resource class; null restores the value'
        ' in the file of shares',
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
        'description': 'Unit-hours per period; null restores the value in the '
        'file of shares',
    },
    'funds': {
        'type': ['number', 'null'],
        'minimum': 0,
        'maximum': 1e12,
        'description': 'Currency that the account may spend in total; null '
        'restores the value in the file of shares',
    },
    'ceiling': _amounts_schema(
        'Largest amount of the account and all accounts below it'
    ),
    'nominal': _amounts_schema(
        'Nominal quota of the account, without that of accounts below it'
    ),
    'borrowing_limit': _amounts_schema(
        'Largest amount that the account and accounts below it may borrow'
    ),
    'lending_limit': _amounts_schema(
        'Largest amount that the account may lend'
    ),
    'windows': {
        **_WINDOWS,
        'type': ['array', 'null'],
        'description': 'Times at which requests may start; null restores the '
        'value in the file of shares',
    },
}

ITEM = parts.record(
    {
        'account': parts.TEXT,
        'parent': parts.describe(
            parts.MAYBE_TEXT,
            'Parent account; null at the top of the tree. It is also null for '
            "the caller's project without ``all_projects=true``, because only "
            'operators see names of groups',
        ),
        'time_limit': parts.describe(
            parts.MAYBE_NUMBER,
            'Longest run time of servers, seconds; null if the account has no '
            'limit of its own',
        ),
        'longest_wait': parts.describe(
            parts.MAYBE_NUMBER,
            'Longest wait of builds, seconds; null if the account has no '
            'limit of its own',
        ),
        'budget': parts.describe(
            parts.MAYBE_NUMBER,
            'Unit-hours that the account and all accounts below it may use in '
            'a period; null if the account has no budget of its own',
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
            parts.MAYBE_TEXT, 'Time at which the next period begins'
        ),
        'funds': parts.describe(
            parts.MAYBE_NUMBER,
            'Currency that the account and all accounts below it may spend '
            'for their servers in total; null without a limit',
        ),
        'funds_left': parts.describe(
            parts.MAYBE_NUMBER, 'Remaining ``funds``, never below 0'
        ),
        'ceiling': parts.describe(
            parts.NUMBER_MAP,
            'Largest amount of the account and all accounts below it, by '
            'resource class of Placement',
        ),
        'nominal': parts.describe(
            parts.NUMBER_MAP,
            'Nominal quota of the account, without that of accounts below it',
        ),
        'borrowing_limit': parts.describe(
            parts.NUMBER_MAP,
            'Largest amount that the account and all accounts below it may '
            'borrow; other classes have no limit',
        ),
        'lending_limit': parts.describe(
            parts.NUMBER_MAP,
            'Largest part of the nominal quota that the account and all '
            'accounts below it may lend',
        ),
        'windows': parts.describe(
            _WINDOWS,
            'Times at which requests may start; empty for any time',
        ),
        'opens_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the next window begins; null during a window, and '
            'without windows',
        ),
        'fault': {
            **parts.TEXT,
            'description': 'Reason why a setting is not valid; no request of '
            'the account starts until a valid value is set',
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

QUERY = url.project_list_query(url.NAME_MARKER)

SET: parts.Schema = {
    **parts.record(
        {
            'account': parts.ACCOUNT,
            **_LIMITED,
            'dry_run': dry_run.DRY_RUN_FLAG,
        },
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
