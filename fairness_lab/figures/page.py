# SPDX-License-Identifier: Apache-2.0

"""Reports of simulated runs: pictures, and a page that needs nothing else."""

import base64
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import html
import pathlib
from typing import Any

from fairness_lab.figures import compare_simulated
from fairness_lab.figures import simulated
from fairness_lab.measures import distance
from fairness_lab.measures import series as series_module

Result = Mapping[str, Any]

_SETTINGS = (
    ('interval_s', 'length of a round, seconds'),
    ('rounds', 'rounds'),
    ('nodes', 'nodes'),
    ('users_count', 'users'),
    ('vms', 'VMs'),
    ('seed', 'seed of random numbers'),
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
        'lacks',
        (
            'How far a user is below the ideal within the weights, as part '
            'of it. The worst user is the one who lacks most; all users: '
            'half of the shares that would have to change hands, as part '
            'of all shares.'
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
        'Capacity that was idle while users wanted it.',
    ),
    (
        'colours of numbers',
        'Green is good, red is poor: '
        + '; '.join(
            f'{item.says}: good up to {item.form.format(item.good)}, poor '
            f'above {item.form.format(item.poor)}'
            for item in compare_simulated.QUANTITIES
            if item.good is not None
        )
        + '. Black numbers are between, or not judged.',
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
    """Scenarios of the runs: text and settings of each."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(str(result.get('scenario')), result)
    return '\n'.join(
        f'<h2>Scenario {html.escape(name)}</h2>\n'
        f'<p>{html.escape(str(result.get("description", "")))}</p>\n'
        f'{definition_list(_settings(result))}'
        for name, result in first.items()
    )


def glossary_html() -> str:
    """Words of a report with their meanings."""
    return f'<h2>What the words mean</h2>\n{definition_list(MEANINGS)}'


def _settings(result: Result) -> Iterator[tuple[str, str]]:
    for key, says in _SETTINGS:
        if key in result:
            yield says, value_html(result[key])
    agents = result.get('agents', {})
    for key, says in _OF_AGENTS:
        if agents.get(key) is not None:
            yield says, value_html(agents[key])
    for name, value in result.get('parameters', {}).items():
        yield f'parameter {name} of the policy', value_html(value)


def value_html(value: Any) -> str:
    """A value of a result for people; nested ones with commas."""
    if isinstance(value, Mapping):
        return ', '.join(
            f'{key} {value_html(item)}' for key, item in value.items()
        )
    if isinstance(value, list):
        return ', '.join(map(value_html, value))
    return f'{value:g}' if isinstance(value, float) else str(value)


def definition_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Words and what they mean, as a list in HTML."""
    rows = '\n'.join(
        f'<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>'
        for word, text in pairs
    )
    return f'<dl>\n{rows}\n</dl>'


_STYLE = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 75em;
       color: #222; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 1.6em; }
img { max-width: 100%; }
table { border-collapse: collapse; }
td, th { padding: .25em .9em .25em 0; text-align: right;
         border-bottom: 1px solid #ddd; }
td { white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
dl { display: grid; grid-template-columns: 17em auto; gap: .2em 1em; }
dt { color: #555; } dd { margin: 0; }
.good { color: #00694b; font-weight: bold; }
.poor { color: #a33c00; font-weight: bold; }
"""


def write_run(
    directory: pathlib.Path, result: Result, series: pathlib.Path
) -> None:
    """Write ``run.png`` and ``report.html`` of a run.

    :param directory: where to.
    :param result: content of its ``result.json``.
    :param series: directory of its series.
    :raises BadSeries: if a series cannot be read.
    """
    side = simulated.SimulatedRun(
        headline(result), result, series_module.read(series)
    )
    image = simulated.run(side)
    (directory / 'run.png').write_bytes(image)
    (directory / 'report.html').write_text(
        page(headline(result), [result], [('This run', image)]),
        encoding='utf-8',
    )


def write_compare(
    directory: pathlib.Path,
    results: Sequence[Result],
    series: Sequence[pathlib.Path] = (),
) -> None:
    """Write ``compare.png`` and ``report.html`` of several runs.

    :param directory: where to.
    :param results: of runs of one or several scenarios.
    :param series: directory of the series of each run; without them, only
        what is summed up is drawn.
    :raises BadSeries: if a series cannot be read.
    """
    places: Sequence[pathlib.Path | None] = series or [None] * len(results)
    sides = [
        simulated.SimulatedRun(
            name_of(result),
            result,
            series_module.read(place) if place else series_module.NOTHING,
        )
        for result, place in zip(results, places, strict=True)
    ]
    image = compare_simulated.compare(sides)
    (directory / 'compare.png').write_bytes(image)
    scenarios = ', '.join(
        dict.fromkeys(str(result.get('scenario')) for result in results)
    )
    title = f'{scenarios}: {len(results)} runs compared'
    (directory / 'report.html').write_text(
        page(title, results, [('All runs', image)]), encoding='utf-8'
    )


def headline(result: Result) -> str:
    """Sentence above a run."""
    return f'{result.get("scenario")}: {name_of(result)}'


def name_of(result: Result) -> str:
    """Name what steered a run."""
    policy = result.get('policy') or 'none'
    if policy == 'none':
        return 'no agent steers'
    return f'{policy}, {result.get("metric")}'


def page(
    title: str,
    results: Sequence[Result],
    images: Sequence[tuple[str, bytes]],
) -> str:
    """Build a page that needs no other file and no network.

    :param images: captions and PNG images.
    """
    return document(
        title,
        _table(results),
        conclusion_section(_conclusions(results)),
        pictures(images),
        scenarios(results),
        glossary_html(),
    )


def pictures(images: Sequence[tuple[str, bytes]]) -> str:
    """Images inside a page, below their captions.

    :param images: captions and PNG images.
    """
    return '\n'.join(
        f'<h2>{html.escape(caption)}</h2>\n<img alt="{html.escape(caption)}"'
        f' src="data:image/png;base64,{base64.b64encode(image).decode()}">'
        for caption, image in images
    )


def document(title: str, *parts: str) -> str:
    """A whole page of parts in HTML, one below the other."""
    body = '\n'.join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'</head><body>\n<h1>{html.escape(title)}</h1>\n'
        f'{body}\n'
        '</body></html>\n'
    )


def conclusion_section(sentences: Iterable[str]) -> str:
    """Conclusions as a part of a page; '' without."""
    items = ''.join(f'<li>{html.escape(each)}</li>\n' for each in sentences)
    return f'<h2>Conclusion</h2>\n<ul>\n{items}</ul>' if items else ''


def _conclusions(results: Sequence[Result]) -> Iterator[str]:
    """A sentence about the worst user, scenario by scenario."""
    lack = compare_simulated.QUANTITIES[0]
    found: dict[str, list[tuple[float, str]]] = {}
    for result in results:
        value = lack.of(result)
        if value is not None:
            name = str(result.get('scenario'))
            found.setdefault(name, []).append((value, name_of(result)))
    for scenario, runs in found.items():
        least, most = min(runs), max(runs)
        if len(runs) == 1:
            yield f'{scenario}: {_lack_sentence(*least)}'
        else:
            yield (
                f'{scenario}: the worst user lacks least with {least[1]}'
                f' ({least[0]:.1%} of the ideal) and most with {most[1]}'
                f' ({most[0]:.1%})'
            )


def _lack_sentence(value: float, name: str) -> str:
    word = compare_simulated.QUANTITIES[0].judge(value)
    verdict = f', which is {word}' if word else ''
    return (
        f'with {name} the worst user lacks {value:.1%} of the ideal once'
        f' settled{verdict}'
    )


def _table(results: Sequence[Result]) -> str:
    head = ''.join(
        f'<th>{html.escape(text)}</th>'
        for text in (
            'run',
            *(item.says for item in compare_simulated.QUANTITIES),
        )
    )
    rows = '\n'.join(
        f'<tr><td>{html.escape(headline(result))}</td>{_cells(result)}</tr>'
        for result in results
    )
    return f'<table><tr>{head}</tr>\n{rows}\n</table>'


def _cells(result: Result) -> str:
    cells = []
    for item in compare_simulated.QUANTITIES:
        value = item.of(result)
        text = '-' if value is None else item.form.format(value)
        cells.append(f'<td class="{item.judge(value)}">{text}</td>')
    return ''.join(cells)
