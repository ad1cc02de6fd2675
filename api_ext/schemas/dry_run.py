# SPDX-License-Identifier: Apache-2.0

"""Schemas of dry runs of shares, limits and orders."""

from api_ext.schemas import parts
from nova_fairness.model import waits

_ESTIMATE: parts.Schema = {
    'type': ['object', 'null'],
    'properties': {'p50': parts.TEXT, 'p90': parts.TEXT},
    'required': ['p50', 'p90'],
    'additionalProperties': False,
    'description': 'When it is expected to start: as likely before as after,'
    ' and nine times of ten before; null if no estimate was made',
}

_FORECAST: parts.Schema = parts.record(
    {
        'state': parts.describe(
            parts.TEXT,
            '``starts``, ``waits``, or ``expires``: it waited for too long',
        ),
        'position': parts.describe(
            parts.MAYBE_COUNT, '1 is next; null if it does not wait'
        ),
        'estimated_start': _ESTIMATE,
        'reason': parts.describe(
            parts.MAYBE_TEXT, 'Why it waits; null if it does not'
        ),
        'explanation': parts.describe(
            parts.MAYBE_TEXT, 'The reason in a sentence'
        ),
    }
)

_REQUESTS: parts.Schema = {
    'type': 'array',
    'items': parts.record(
        {
            'uuid': parts.TEXT,
            'project_id': parts.TEXT,
            'user_id': parts.TEXT,
            'servers': parts.TEXTS,
            'before': parts.describe(_FORECAST, 'Without the change'),
            'after': parts.describe(_FORECAST, 'With the change'),
        }
    ),
    'description': 'The first requests, without or with the change, that the'
    ' caller may list; at most 50, the next one with the change first, and'
    ' those that no room helps last',
}

_SPANS: parts.Schema = parts.record(
    {f'p{part}': parts.NUMBER for part in waits.PERCENTILES}
)

_WAITS: parts.Schema = {
    'requests_count': parts.COUNT,
    'before': parts.describe(
        _SPANS, 'Seconds that part of them did not exceed, without the change'
    ),
    'after': parts.describe(_SPANS, 'The same with the change'),
}

_PAST: parts.Schema = {
    **parts.record(
        {
            'since': parts.describe(
                parts.TEXT, 'When the oldest of them was sent to Nova'
            ),
            **_WAITS,
            'projects': parts.records({'project_id': parts.TEXT, **_WAITS}),
        }
    ),
    'type': ['object', 'null'],
    'description': 'Waits of requests of the last seven days, replayed without'
    ' and with the change; null if none were, and for limits, which do not'
    ' count in the replay',
}

ITEM = parts.record(
    {
        'seen_at': parts.describe(
            parts.TEXT, 'When the cloud was looked at; both plans are of then'
        ),
        'order': parts.describe(
            parts.TEXT, 'Name of the order that is in force'
        ),
        'order_description': parts.describe(
            parts.TEXT, 'Description of that order, in a sentence'
        ),
        'requests_count': parts.describe(
            parts.COUNT, 'Requests that waited then, of all projects'
        ),
        'starts_before_count': parts.describe(
            parts.COUNT, 'Of these, those that start without the change'
        ),
        'starts_after_count': parts.describe(
            parts.COUNT, 'Those that start with the change'
        ),
        'sooner_count': parts.describe(
            parts.COUNT,
            'Those that start, or stand nearer to the start, by it',
        ),
        'later_count': parts.describe(
            parts.COUNT, 'Those that stand farther from the start by it'
        ),
        'not_named_count': parts.describe(
            parts.COUNT,
            'Those that are not in ``requests``: others own them, or more'
            ' than 50 wait',
        ),
        'past_waits': _PAST,
        'requests': _REQUESTS,
    },
    since=dict.fromkeys(('order', 'order_description'), '1.8'),
)

SHOW = parts.record({'dry_run': ITEM})

ASKED: parts.Schema = {
    'type': 'boolean',
    'description': 'Change nothing, and answer ``dry_run``: who would start'
    ' next',
}
"""Field of the body of a change that requests a dry run."""
