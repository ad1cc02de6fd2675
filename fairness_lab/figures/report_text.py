# SPDX-License-Identifier: Apache-2.0

"""What a report says in words: what was run, and what its words mean."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import html
from typing import Any

from fairness_lab.measures import comparison
from fairness_lab.measures import distance

Result = Mapping[str, Any]

_SETTINGS = (
    ('interval_s', 'seconds of a round'),
    ('rounds', 'rounds'),
    ('nodes', 'nodes'),
    ('users_count', 'users'),
    ('vms', 'VMs'),
    ('seed', 'seed of all chance'),
    ('share', 'share that is compared'),
    ('package_version', 'version of nova-fairness'),
)
_OF_AGENTS = (
    ('max_weight_ratio', 'largest by smallest weight'),
    ('decay_factor', 'weight of the newest interval in the usage'),
    ('largest_step', 'largest step of a weight in a round, a factor'),
    ('weight_tolerance', 'change of a weight that is not written'),
    ('view_max_age', 'age up to which a report counts, intervals'),
    ('controls', 'controls'),
    ('ticks', 'parts of a round in which agents act'),
    ('spread', 'how agents are spread over them'),
    ('reports', 'delay, jitter and loss of reports'),
)


MEANINGS: Sequence[tuple[str, str]] = (
    (
        'ideal',
        (
            'The lexicographic max-min fair division of all nodes over their '
            'users. Within the weights (dashed): the best that weights of the '
            'configured ratio can reach. Free (dotted): without that bound.'
        ),
    ),
    (
        'misses',
        (
            'What a user has less than their ideal within the weights, as '
            'part of it. The worst user is the one who misses most; all '
            'users: half of what would have to change hands, as part of '
            'all shares.'
        ),
    ),
    ('settled', 'The mean of the second half of the run.'),
    (
        "Jain's index",
        'Of share by ideal: 1 where all have the same part of their ideal.',
    ),
    (
        'rounds to 5 %',
        (
            'Rounds after a change of demand until the worst user is within '
            f'{distance.WITHIN:.0%} of the ideal and stays so; the most of '
            f'all stretches of at least {distance.LONG_ENOUGH} rounds that '
            'get there.'
        ),
    ),
    (
        'overshoot',
        (
            'How far a user who began off went beyond the ideal to its other '
            'side, as part of the ideal, at most.'
        ),
    ),
    (
        'oscillation',
        (
            'Largest peak to peak of the share of a user, as part of its '
            'mean, in the second half of a stretch of constant demand, the '
            f'last {distance.SWING_ROUNDS} rounds at most.'
        ),
    ),
    (
        'weight swing',
        (
            'Largest peak to peak of the weight of a VM in the same rounds, '
            'as part of the smallest.'
        ),
    ),
    (
        'idle though wanted',
        'Capacity that nobody used while somebody wanted it.',
    ),
    (
        'colours of numbers',
        'Green is good, red is poor: '
        + '; '.join(
            f'{item.says}: good up to {item.form.format(item.good)}, poor '
            f'above {item.form.format(item.poor)}'
            for item in comparison.QUANTITIES
            if item.good is not None
        )
        + '. What is black is between, or not judged.',
    ),
    (
        'colours of curves',
        (
            'In the picture of one run each user has a colour, and so have '
            'the weights of their VMs; where they are many, all have one. '
            'In the picture of several runs each policy has a colour. The '
            f'dotted grey line is at {distance.WITHIN:.0%}.'
        ),
    ),
)
"""Words of a report, and what they mean."""


def scenarios(results: Sequence[Result]) -> str:
    """What was run, by scenario: its text, its settings."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(str(result.get('scenario')), result)
    return '\n'.join(
        f'<h2>Scenario {html.escape(name)}</h2>\n'
        f'<p>{html.escape(str(result.get("description", "")))}</p>\n'
        f'{_defined(_settings(result))}'
        for name, result in first.items()
    )


def meanings() -> str:
    """Words of a report with their meanings."""
    return f'<h2>What the words mean</h2>\n{_defined(MEANINGS)}'


def _settings(result: Result) -> Iterator[tuple[str, str]]:
    for key, says in _SETTINGS:
        if key in result:
            yield says, _said(result[key])
    agents = result.get('agents', {})
    for key, says in _OF_AGENTS:
        if agents.get(key) is not None:
            yield says, _said(agents[key])
    for name, value in result.get('parameters', {}).items():
        yield f'parameter {name} of the policy', _said(value)


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ', '.join(f'{key} {_said(item)}' for key, item in value.items())
    if isinstance(value, list):
        return ', '.join(map(_said, value))
    return f'{value:g}' if isinstance(value, float) else str(value)


def _defined(pairs: Iterable[tuple[str, str]]) -> str:
    rows = '\n'.join(
        f'<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>'
        for word, text in pairs
    )
    return f'<dl>\n{rows}\n</dl>'
