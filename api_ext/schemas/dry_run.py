# SPDX-License-Identifier: Apache-2.0

"""Schemas of dry runs of shares, limits and orders."""

from api_ext.schemas import parts
from nova_fairness.model import waits

_ESTIMATE: parts.Schema = {
    'type': ['object', 'null'],
    'properties': {'p50': parts.TEXT, 'p90': parts.TEXT},
    'required': ['p50', 'p90'],
    'additionalProperties': False,
    'description': 'Estimate of its start: it starts by ``p50`` in half of '
    'the cases, and by ``p90`` in nine of ten; null if no estimate was made',
}

_FORECAST: parts.Schema = parts.record(
    {
        'state': parts.describe(
            parts.TEXT,
            '``starts``, ``waits``, or ``expires`` after its longest wait',
        ),
        'position': parts.describe(
            parts.MAYBE_COUNT,
            'Position in the queue, from 1; null if it does not wait',
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
    'description': 'Requests that are first before or after the change, and '
    'that the caller may list; at most 50, by position after the change. '
    'Requests that wait for more than room come last',
}

_SPANS: parts.Schema = parts.record(
    {f'p{part}': parts.NUMBER for part in waits.PERCENTILES}
)

_WAITS: parts.Schema = {
    'requests_count': parts.COUNT,
    'before': parts.describe(
        _SPANS, 'Percentiles of their waits without the change, seconds'
    ),
    'after': parts.describe(
        _SPANS, 'Percentiles of their waits with the change, seconds'
    ),
}

_PAST: parts.Schema = {
    **parts.record(
        {
            'since': parts.describe(
                parts.TEXT,
                'When the oldest of these requests was sent to Nova',
            ),
            **_WAITS,
            'projects': parts.records({'project_id': parts.TEXT, **_WAITS}),
        }
    ),
    'type': ['object', 'null'],
    'description': 'Waits of requests of the last seven days, replayed '
    'without and with the change; null if none were replayed, and for limits, '
    'which do not count in the replay',
}

ITEM = parts.record(
    {
        'seen_at': parts.describe(
            parts.TEXT, 'Time of the state of the cloud that both plans use'
        ),
        'order': parts.describe(parts.TEXT, 'Name of the order in force'),
        'order_description': parts.describe(
            parts.TEXT, 'Description of that order, in a sentence'
        ),
        'requests_count': parts.describe(
            parts.COUNT, 'Requests of all projects that waited then'
        ),
        'starts_before_count': parts.describe(
            parts.COUNT, 'Number of them that start without the change'
        ),
        'starts_after_count': parts.describe(
            parts.COUNT, 'Number of them that start with the change'
        ),
        'sooner_count': parts.describe(
            parts.COUNT,
            'Number of them that start, or move forward, with the change',
        ),
        'later_count': parts.describe(
            parts.COUNT, 'Number of them that move back with the change'
        ),
        'not_named_count': parts.describe(
            parts.COUNT,
            'Number of them that are not in ``requests``: other projects own '
            'them, or more than 50 wait',
        ),
        'past_waits': _PAST,
        'requests': _REQUESTS,
    },
    since=dict.fromkeys(('order', 'order_description'), '1.8'),
)

SHOW = parts.record({'dry_run': ITEM})

ASKED: parts.Schema = {
    'type': 'boolean',
    'description': 'Dry run: change nothing, and answer ``dry_run``, the '
    'effect of the change',
}
"""Field of the body of a change that requests a dry run."""
