# SPDX-License-Identifier: Apache-2.0

"""Schemas of dry runs of shares, limits and orders."""

from api_ext.schemas import parts
from nova_fairness.model import waits

_ESTIMATE: parts.Schema = {
    'type': ['object', 'null'],
    'properties': {'p50': parts.TEXT, 'p90': parts.TEXT},
    'required': ['p50', 'p90'],
    'additionalProperties': False,
    'description': 'Estimated start of the request: before ``p50`` in half of '
    'the cases, and before ``p90`` in 90 percent; null without an estimate',
}

_FORECAST: parts.Schema = parts.record(
    {
        'state': parts.describe(
            parts.TEXT,
            '``starts``, ``waits``, or ``expires`` (the longest wait passed)',
        ),
        'position': parts.describe(
            parts.MAYBE_COUNT,
            'Position in the queue, from 1; null if the request does not wait',
        ),
        'estimated_start': _ESTIMATE,
        'reason': parts.describe(
            parts.MAYBE_TEXT,
            'Reason for the wait; null if the request does not wait',
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
    'description': 'First requests of the queue without and with the change, '
    'if the caller may list them; at most 50, by position with the change. '
    'Requests that wait for more than free capacity are last',
}

_WAIT_PERCENTILES: parts.Schema = parts.record(
    {f'p{part}': parts.NUMBER for part in waits.PERCENTILES}
)

_WAITS: parts.Schema = {
    'requests_count': parts.COUNT,
    'before': parts.describe(
        _WAIT_PERCENTILES,
        'Percentiles of the waits without the change, seconds',
    ),
    'after': parts.describe(
        _WAIT_PERCENTILES, 'Percentiles of the waits with the change, seconds'
    ),
}

_PAST: parts.Schema = {
    **parts.record(
        {
            'since': parts.describe(
                parts.TEXT,
                'Time at which the oldest of these requests was sent to Nova',
            ),
            **_WAITS,
            'projects': parts.records({'project_id': parts.TEXT, **_WAITS}),
        }
    ),
    'type': ['object', 'null'],
    'description': 'Waits of the requests of the last seven days in a replay '
    'without and with the change; null without a replay, and for changes of '
    'limits, which the replay ignores',
}

ITEM = parts.record(
    {
        'seen_at': parts.describe(
            parts.TEXT,
            'Time at which the state of the cloud was read for both plans',
        ),
        'order': parts.describe(parts.TEXT, 'Name of the order in use'),
        'order_description': parts.describe(
            parts.TEXT, 'Description of that order, in a sentence'
        ),
        'requests_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests of all projects at that time',
        ),
        'starts_before_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests that start without the change',
        ),
        'starts_after_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests that start with the change',
        ),
        'sooner_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests that start, or move forward in the '
            'queue, because of the change',
        ),
        'later_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests that move back in the queue because '
            'of the change',
        ),
        'not_named_count': parts.describe(
            parts.COUNT,
            'Number of waiting requests that are missing in ``requests``: '
            'they belong to other projects, or more than 50 wait',
        ),
        'past_waits': _PAST,
        'requests': _REQUESTS,
    },
    since=dict.fromkeys(('order', 'order_description'), '1.8'),
)

SHOW = parts.record({'dry_run': ITEM})

DRY_RUN_FLAG: parts.Schema = {
    'type': 'boolean',
    'description': 'Dry run: change nothing, and answer ``dry_run``, the '
    'effect of the change',
}
"""Field of the body of a change that requests a dry run."""
