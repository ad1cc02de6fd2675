# SPDX-License-Identifier: Apache-2.0

"""Schemas of requests."""

from api_ext.schemas import parts
from api_ext.schemas import patterns
from api_ext.schemas import url
from nova_fairness.model import request

MOST = 1000
"""Largest number of requests per page."""

_ESTIMATE: parts.Schema = {
    **parts.record(
        {
            'p50': parts.describe(
                parts.TEXT,
                'Time before which the request starts in half of the cases',
            ),
            'p90': parts.describe(
                parts.TEXT,
                'Time before which the request starts in 90 percent of the '
                'cases',
            ),
        }
    ),
    'type': ['object', 'null'],
}

_RISK: parts.Schema = {
    'server': parts.TEXT,
    'state': parts.describe(
        parts.TEXT, '``at_risk``: an eviction is possible, but not decided'
    ),
    'since': parts.TEXT,
    'reason': parts.TEXT,
    'explanation': parts.TEXT,
    'subject': parts.TEXT,
    'numbers': parts.NUMBER_MAP,
}

_EVENT: parts.Schema = {
    'at': parts.describe(parts.TEXT, 'Time at which the event began'),
    'until': parts.describe(
        parts.MAYBE_TEXT,
        'Time at which the event ended; null if it continues, or has no '
        'duration',
    ),
    'kind': parts.TEXT,
    'server': parts.describe(
        parts.MAYBE_TEXT, 'UUID of the server, if the event concerns only one'
    ),
    'reason': parts.MAYBE_TEXT,
    'explanation': parts.MAYBE_TEXT,
    'hosts': parts.describe(
        parts.TEXTS,
        'Hosts of the servers; for a migration, source and target. Empty for '
        'callers who are no operators',
    ),
}

ITEM = parts.record(
    {
        'uuid': parts.describe(
            parts.TEXT,
            'For a build, the UUID of its first server, which is also the '
            'UUID of that server in Nova',
        ),
        'project_id': parts.TEXT,
        'user_id': parts.TEXT,
        'origin': {'type': 'string', 'enum': ['build', 'unshelve']},
        'preemptible': {'type': 'boolean'},
        'preemption_action': parts.describe(
            parts.MAYBE_TEXT,
            'Action that the owner chose for a preemption of the servers; '
            'null without a choice, or if the choice is not allowed',
        ),
        'servers': parts.TEXTS,
        'server_names': parts.describe(
            parts.TEXTS,
            'Names of ``servers`` at the time when Nova accepted the request, '
            'in the same order; empty if unknown',
        ),
        'resources': parts.describe(
            parts.NUMBER_MAP,
            'Amounts for each server, by resource class of Placement',
        ),
        'state': parts.describe(
            parts.TEXT,
            '``waiting``; ``reserved``, ``sending`` and ``starting`` (the '
            'request is being started); ``active`` (its servers run); '
            '``ended``, ``cancelled``, ``expired`` and ``failed`` (final '
            'states)',
        ),
        'reason': parts.TEXT,
        'explanation': parts.describe(
            parts.TEXT,
            'The reason in a sentence, with ``subject`` and ``numbers``',
        ),
        'subject': parts.TEXT,
        'numbers': parts.NUMBER_MAP,
        'summary': parts.describe(
            parts.TEXTS, 'State of the request and its cause, in sentences'
        ),
        'position': parts.describe(
            parts.MAYBE_COUNT,
            'Position in the queue, from 1; null if the request does not '
            'wait, or is held',
        ),
        'factors': parts.describe(
            parts.NUMBER_MAP,
            'Numbers by which the order compares requests; empty if the '
            'request does not wait, or the order shows none. They describe '
            'the request, its user and its project. ``project_use`` and '
            '``user_use`` are the past use of project and user, divided by '
            'their share among the accounts with waiting requests (1: exactly '
            'the share); they are missing without a share',
        ),
        'reserved_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the reserved room is expected to be free; null '
            'without a reservation, or if the time is unknown',
        ),
        'estimated_start': _ESTIMATE,
        'asked_at': parts.TEXT,
        'since': parts.TEXT,
        'expires_at': parts.MAYBE_TEXT,
        'time_limit': parts.describe(
            parts.MAYBE_NUMBER,
            'Longest run time of the servers, seconds; null without a limit',
        ),
        'extended': parts.describe(
            parts.NUMBER, 'Seconds by which ``time_limit`` was extended'
        ),
        'ends_at': parts.describe(
            parts.MAYBE_TEXT,
            'Time at which the running servers reach their time limit',
        ),
        'leaving': parts.records(parts.EVICTION_FIELDS),
        'at_risk': parts.records(_RISK),
        'held_by': parts.describe(
            {'enum': ['operator', 'owner', None]},
            'Role of the caller who holds the request; null without a hold. '
            '``explanation`` has the cause',
        ),
        'first': parts.describe(
            parts.BOOLEAN,
            'An operator put it before all others of its priority',
        ),
        'standing': parts.describe(
            parts.TEXT,
            'Present state of the servers: ``waits``, ``starts``, ``runs``, '
            '``moves`` (a server is being migrated), ``leaves`` (a server is '
            'being evicted, or will be), ``away`` (a server was shelved by a '
            'preemption and starts again automatically) or ``ended``. For '
            '``leaves`` and ``away``, ``reason`` and ``explanation`` have the '
            'cause',
        ),
        'status': parts.describe(
            parts.TEXT,
            '``standing`` in words. It also mentions a migration plan that '
            'would free room for the request and waits for approval',
        ),
        'waited': parts.describe(
            parts.MAYBE_TEXT,
            'Causes of the waits of the request with their durations, the '
            'longest first; null below one minute',
        ),
        'events': parts.records(_EVENT),
    },
    optional=('held_by', 'first', 'waited', 'events'),
    since={'server_names': '1.8', 'standing': '1.8', 'status': '1.8'},
)

LIST = parts.record(
    {
        'requests': {'type': 'array', 'items': ITEM},
        'requests_links': parts.LINKS,
    },
    optional=('requests_links',),
)

SHOW = parts.record({'request': ITEM})

_UUIDS = url.project_list_query(url.UUID_MARKER)

QUERY: parts.Schema = {
    **_UUIDS,
    'properties': {
        **_UUIDS['properties'],
        'preemptible': url.FLAG,
        'project_id': {'type': 'string', 'pattern': patterns.ID},
        'state': {
            'type': 'string',
            'enum': [each.value for each in request.State],
        },
        'user_id': {'type': 'string', 'pattern': patterns.ID},
        'server': url.UUID_MARKER,
        'host': {'type': 'string', 'pattern': patterns.HOST},
        'since': url.TIME,
        'ended': url.FLAG,
        'running': url.FLAG,
    },
}

SHOW_QUERY: parts.Schema = parts.record(
    {'events': url.FLAG}, optional=('events',)
)

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
            'description': 'Send the request to Nova even if no host has room;'
            ' Nova fails it if it finds none',
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
            'pattern': patterns.LINE,
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
