# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, and the room there is."""

from api_ext.schemas import parts
from api_ext.schemas import url

MOST = 1000
"""Requests of one page, whatever is asked for."""


_ESTIMATE: parts.Schema = {
    **parts.record({'p50': parts.TEXT, 'p90': parts.TEXT}),
    'type': ['object', 'null'],
}

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

_LEAVE: parts.Schema = {
    'server': parts.TEXT,
    'state': parts.TEXT,
    'cause': parts.TEXT,
    'for_request': parts.MAYBE_TEXT,
    'action': parts.TEXT,
    'leaves_at': parts.TEXT,
    'reason': parts.TEXT,
    'explanation': parts.TEXT,
    'subject': parts.TEXT,
    'numbers': parts.NUMBERS,
}

_RISK: parts.Schema = {
    'server': parts.TEXT,
    'state': parts.TEXT,
    'since': parts.TEXT,
    'reason': parts.TEXT,
    'explanation': parts.TEXT,
    'subject': parts.TEXT,
    'numbers': parts.NUMBERS,
}

ITEM = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.TEXT,
        'user_id': parts.TEXT,
        'origin': {'type': 'string', 'enum': ['build', 'unshelve']},
        'preemptible': {'type': 'boolean'},
        'preemption_action': parts.MAYBE_TEXT,
        'servers': parts.TEXTS,
        'resources': parts.NUMBERS,
        'state': parts.TEXT,
        'reason': parts.TEXT,
        'explanation': parts.TEXT,
        'subject': parts.TEXT,
        'numbers': parts.NUMBERS,
        'summary': parts.TEXTS,
        'position': parts.MAYBE_COUNT,
        'factors': parts.NUMBERS,
        'reserved_at': parts.MAYBE_TEXT,
        'estimated_start': _ESTIMATE,
        'asked_at': parts.TEXT,
        'since': parts.TEXT,
        'expires_at': parts.MAYBE_TEXT,
        'time_limit': parts.MAYBE_NUMBER,
        'extended': parts.NUMBER,
        'ends_at': parts.MAYBE_TEXT,
        'leaving': parts.records(_LEAVE),
        'at_risk': parts.records(_RISK),
        'held_by': {'enum': ['operator', 'owner', None]},
        'first': parts.TRUTH,
    },
    optional=('held_by', 'first'),
)

LIST = parts.record(
    {
        'requests': {'type': 'array', 'items': ITEM},
        'requests_links': parts.LINKS,
    },
    optional=('requests_links',),
)

SHOW = parts.record({'request': ITEM})


_FLAG: parts.Schema = {'type': 'string', 'enum': ['true', 'false']}


def _query(marker: parts.Schema) -> parts.Schema:
    """Query of a list of the own project or of all."""
    return parts.record(
        {
            'limit': {
                'type': 'integer',
                'minimum': 1,
                'maximum': url.LARGEST_LIMIT,
            },
            'marker': marker,
            'all_projects': _FLAG,
        },
        optional=('limit', 'marker', 'all_projects'),
    )


_UUIDS = _query({'type': 'string', 'pattern': url.UUID})

QUERY: parts.Schema = {
    **_UUIDS,
    'properties': {**_UUIDS['properties'], 'preemptible': _FLAG},
}

PREEMPTION = parts.record(
    {
        'uuid': parts.TEXT,
        'project_id': parts.MAYBE_TEXT,
        'user_id': parts.MAYBE_TEXT,
        'server': parts.MAYBE_TEXT,
        **{name: each for name, each in _LEAVE.items() if name != 'server'},
        'for_project': parts.MAYBE_TEXT,
        'outcome': {'enum': ['freed', 'stayed', 'spared', None]},
        'chosen_at': parts.TEXT,
        'told_at': parts.MAYBE_TEXT,
        'acted_at': parts.MAYBE_TEXT,
        'freed_at': parts.MAYBE_TEXT,
        'returned_at': parts.MAYBE_TEXT,
        'answered': parts.TRUTH,
        'notice_s': parts.MAYBE_NUMBER,
        'lost_vcpu_s': parts.NUMBER,
    }
)

PREEMPTIONS = parts.record(
    {
        'preemptions': {'type': 'array', 'items': PREEMPTION},
        'preemptions_links': parts.LINKS,
    },
    optional=('preemptions_links',),
)

PREEMPTIONS_QUERY = _UUIDS

SHOW_PREEMPTION = parts.record({'preemption': PREEMPTION})

SHARE = parts.record(
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

SHARES = parts.record(
    {
        'shares': {'type': 'array', 'items': SHARE},
        'shares_links': parts.LINKS,
    },
    optional=('shares_links',),
)

SHARES_QUERY = _query({'type': 'string', 'minLength': 1, 'maxLength': 255})

_ACCOUNT: parts.Schema = {
    'type': 'string',
    'maxLength': 255,
    'pattern': '^[^/]+(/[^/]+)?$',
    'description': 'A project, PROJECT/USER, or a name of the file',
}

SET_SHARE = parts.record(
    {
        'account': _ACCOUNT,
        'share': {
            'type': ['number', 'null'],
            'minimum': 0,
            'maximum': 1e9,
            'description': 'Beside its siblings; null for what the file says',
        },
    }
)

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

LIMIT = parts.record(
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

LIMITS = parts.record(
    {
        'limits': {'type': 'array', 'items': LIMIT},
        'limits_links': parts.LINKS,
    },
    optional=('limits_links',),
)

SET_LIMITS: parts.Schema = {
    **parts.record(
        {'account': _ACCOUNT, **_LIMITED}, optional=tuple(_LIMITED)
    ),
    'minProperties': 2,
}

GROUP = parts.record(
    {
        'id': parts.TEXT,
        'name': parts.TEXT,
        'project_id': parts.TEXT,
        'rate': parts.NUMBER,
        'count': parts.COUNT,
        'servers_count': parts.COUNT,
        'server_rate': parts.MAYBE_NUMBER,
    }
)

GROUPS = parts.record(
    {
        'groups': {'type': 'array', 'items': GROUP},
        'groups_links': parts.LINKS,
    },
    optional=('groups_links',),
)

SHOW_GROUP = parts.record({'group': {**GROUP, 'type': ['object', 'null']}})

PRICE = parts.record(
    {
        'id': parts.TEXT,
        'host': parts.TEXT,
        'resource_class': parts.TEXT,
        'price': parts.NUMBER,
        'capacity': parts.NUMBER,
        'at': parts.TEXT,
    }
)

PRICES_QUERY = parts.record(
    {
        'limit': {
            'type': 'integer',
            'minimum': 1,
            'maximum': url.LARGEST_LIMIT,
        },
        'marker': {'type': 'string', 'minLength': 1, 'maxLength': 255},
    },
    optional=('limit', 'marker'),
)

PRICES = parts.record(
    {
        'prices': {'type': 'array', 'items': PRICE},
        'prices_links': parts.LINKS,
    },
    optional=('prices_links',),
)

_PAID: dict[str, parts.Schema] = {
    'name': {'type': 'string', 'pattern': '^[^/]{1,100}$'},
    'project_id': {
        'type': 'string',
        'pattern': '^[^/]{1,255}$',
        'description': 'If it is not that of the token',
    },
    'rate': {
        'type': 'number',
        'minimum': 0.001,
        'maximum': 1e6,
        'description': 'Currency for a CPU-hour, of all its servers together',
    },
    'count': {
        'type': 'integer',
        'minimum': 1,
        'maximum': 100_000,
        'description': 'Servers that the rate is for',
    },
}

CREATE_GROUP = parts.record(_PAID, optional=('project_id', 'count'))

SET_GROUP: parts.Schema = {
    **parts.record(
        {
            **_PAID,
            'rate': {
                **_PAID['rate'],
                'type': ['number', 'null'],
                'description': 'null to take the group away',
            },
        },
        optional=('project_id', 'rate', 'count'),
    ),
    'anyOf': [{'required': ['rate']}, {'required': ['count']}],
}

_EXTENSION = parts.record(
    {'seconds': {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1e9}}
)

_ORDER = {'type': ['null', 'object'], 'additionalProperties': False}

ACTIONS = ('cancel', 'release', 'first', 'unfirst', 'hold', 'unhold')

_RELEASE: parts.Schema = {
    'type': ['null', 'object'],
    'properties': {
        'without_room': {
            'type': 'boolean',
            'description': 'Nova looks for room itself, and ends the request'
            ' if it finds none',
        },
    },
    'additionalProperties': False,
}

_HOLD: parts.Schema = {
    'type': ['null', 'object'],
    'properties': {
        'why': {
            'type': 'string',
            'minLength': 1,
            'maxLength': 200,
            'pattern': r'^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$',
            'description': 'Text for the owners of the request',
        },
    },
    'additionalProperties': False,
}

ACTION = {
    'type': 'object',
    'properties': {
        **dict.fromkeys(ACTIONS, _ORDER),
        'release': _RELEASE,
        'hold': _HOLD,
        'extend': _EXTENSION,
    },
    'additionalProperties': False,
    'minProperties': 1,
    'maxProperties': 1,
}

CAPACITY_ITEM = parts.record(
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

CAPACITY = parts.record({'capacity': CAPACITY_ITEM})
