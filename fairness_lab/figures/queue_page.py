# SPDX-License-Identifier: Apache-2.0

"""Reports of the queue: pictures, and a page that needs nothing else."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import html
import pathlib
from typing import Any

from fairness_lab.figures import page
from fairness_lab.figures import queue

Result = Mapping[str, Any]

_SETTINGS = (
    ('seed', 'seed of random numbers'),
    ('package_version', 'version of nova-fairness'),
    ('duration_s', 'length, seconds'),
    ('cycle_s', 'time between two plans, seconds'),
    ('half_life_s', 'half-life of use, seconds'),
    ('longest_wait_s', 'longest wait of a request, seconds'),
    ('patience_s', 'patience of a reservation, seconds'),
    ('notice_s', 'notice before an eviction, seconds'),
    ('hosts', 'hosts'),
    ('capacity', 'capacity of all hosts'),
    ('projects', 'projects'),
    ('users', 'users'),
    ('sizes', 'sizes of requests'),
)

MEANINGS: Sequence[tuple[str, str]] = (
    (
        'entitled to',
        (
            'The use of a project if all use were divided by shares among '
            'the projects that want something. No project gets more than it '
            'wants; the rest goes to the others by their shares.'
        ),
    ),
    (
        'error of shares',
        (
            'The part of all use that is in other hands than those entitled '
            'to it, 0 to 100 %. Use and entitlement fade with the half-life. '
            f'The dotted line is at {queue.WITHIN:.0%}.'
        ),
    ),
    (
        'who waits',
        'The error among those projects alone that have requests waiting.',
    ),
    (
        'grey at the left',
        (
            'The first two half-lives, or half of a shorter run. They do not '
            'count in means.'
        ),
    ),
    (
        'utilisation',
        'Allocated part of the class of resources that is used most.',
    ),
    (
        "Jain's index",
        (
            'Of what users have by what they are entitled to: 1 where all '
            'have the same part of it.'
        ),
    ),
    (
        'dominant share',
        'A part of the cloud, in the class that the user has most of.',
    ),
    (
        'wait',
        (
            'Mean and p95 (95 of 100 waited less) of requests that started; '
            'the longest is of all, also of those that never started.'
        ),
    ),
    ('expired', 'Requests that waited too long and never started.'),
    (
        'servers that left, work lost',
        (
            'Preemptible servers that made room for others, and what they had '
            'used until then and lost, as a part of all that was used.'
        ),
    ),
)
"""Words of a report, and what they mean."""


def _part(group: str, name: str) -> tuple[str, str, float, str]:
    return group, name, 100.0, '{:.1f} %'


def _hours(name: str) -> tuple[str, str, float, str]:
    return 'waiting', name, 1 / queue.HOUR_S, '{:.2f} h'


_CELLS = {
    'error of shares': _part('share_error', 'mean'),
    'of who waits': _part('share_error_wanting', 'mean'),
    'utilisation': _part('utilisation', 'settled_mean'),
    "Jain's index": ('jain', 'mean', 1.0, '{:.3f}'),
    'wait, mean': _hours('mean_s'),
    'p95': _hours('p95_s'),
    'longest': _hours('longest_s'),
    'expired': ('waiting', 'expired', 1.0, '{:.0f}'),
    'servers that left': ('made_room', 'servers', 1.0, '{:.0f}'),
    'work lost': ('made_room', 'lost_part', 100.0, '{:.2f} %'),
}
"""Columns: where each number is in a result, its factor and form."""


def write_run(directory: pathlib.Path, title: str, result: Result) -> None:
    """Write ``run.png`` and ``report.html`` of a run.

    :param directory: that has its tables.
    :param title: what is special of it, such as its order.
    :param result: content of its ``result.json``.
    :raises BadSeries: if a table cannot be read; names it.
    """
    image = queue.run(queue.read(title, result, directory))
    (directory / 'run.png').write_bytes(image)
    text = page.document(
        f'{result["scenario"]}, {title}',
        _table([(title, result)]),
        page.conclusion_section(_conclusions([(title, result)])),
        page.pictures([('This run', image)]),
        *_clouds([result]),
        _meanings(),
    )
    (directory / 'report.html').write_text(text, encoding='utf-8')


def write_compare(
    directory: pathlib.Path, runs: Sequence[tuple[str, Result]]
) -> None:
    """Write ``compare.png`` and ``report.html`` of several runs.

    :param runs: title and content of the ``result.json`` of each, with the
        ``directory`` of its tables below this one.
    :raises BadSeries: if a table cannot be read; names it.
    """
    image = queue.compare(
        [
            queue.read(title, result, directory / result['directory'])
            for title, result in runs
        ]
    )
    (directory / 'compare.png').write_bytes(image)
    results = [result for _, result in runs]
    text = page.document(
        f'{len(runs)} runs of the queue compared',
        _table(runs),
        page.conclusion_section(_conclusions(runs)),
        page.pictures([('All runs', image)]),
        *_clouds(results),
        _meanings(),
    )
    (directory / 'report.html').write_text(text, encoding='utf-8')


def _table(runs: Sequence[tuple[str, Result]]) -> str:
    shown = {
        says: cell
        for says, cell in _CELLS.items()
        if any(result.get(cell[0]) for _, result in runs)
    }
    head = ''.join(f'<th>{html.escape(says)}</th>' for says in ('run', *shown))
    lines = []
    for title, result in runs:
        cells = ''.join(
            f'<td>{_cell(result, *cell)}</td>' for cell in shown.values()
        )
        lines.append(f'<tr><td>{_named(title, result)}</td>{cells}</tr>')
    rows = '\n'.join(lines)
    return f'<table><tr>{head}</tr>\n{rows}\n</table>'


def _conclusions(runs: Sequence[tuple[str, Result]]) -> Iterator[str]:
    """Sentences about errors of shares and waits, cloud by cloud."""
    for cloud in dict.fromkeys(result['scenario'] for _, result in runs):
        own = [run for run in runs if run[1]['scenario'] == cloud]
        errors = _ranked(own, 'share_error', 'mean')
        waits = _ranked(own, 'waiting', 'p95_s')
        if errors:
            yield f'{cloud}: {_of_errors(errors)}'
        if len(errors) > 1 and len(waits) > 1:
            yield f'{cloud}: {_of_waits(errors, waits)}'


_Ranked = Sequence[tuple[float, str]]
"""Values of runs, the least first, and titles."""


def _ranked(
    runs: Sequence[tuple[str, Result]], group: str, name: str
) -> _Ranked:
    values = [((r.get(group) or {}).get(name), title) for title, r in runs]
    return sorted((v, title) for v, title in values if v is not None)


def _of_errors(errors: _Ranked) -> str:
    (least, title), (most, last) = errors[0], errors[-1]
    if len(errors) == 1:
        word = 'at most' if least <= queue.WITHIN else 'more than'
        return (
            f'the error of shares is {least:.1%} on average, {word}'
            f' {queue.WITHIN:.0%}'
        )
    return (
        f'the error of shares is least with {title} ({least:.1%}) and largest'
        f' with {last} ({most:.1%})'
    )


def _of_waits(errors: _Ranked, waits: _Ranked) -> str:
    """Say who waits least, and what that has to do with shares."""
    least, title = waits[0]
    told = (
        f'p95 of the waits is least with {title} ({least / queue.HOUR_S:.2f}'
        ' h)'
    )
    known = {name: value for value, name in errors}
    if title not in known:
        return told
    if known[title] <= errors[0][0]:
        return f'{told}, which divides best by shares, too'
    return (
        f'{told}, and its error of shares is larger: where projects that used'
        ' more than their share wait for the others, their waits are the'
        ' longest and make p95 larger'
    )


def _named(title: str, result: Result) -> str:
    """A run, with a link to its own page if it has one."""
    text = html.escape(f'{result["scenario"]}, {title}')
    if 'directory' not in result:
        return text
    place = html.escape(f'{result["directory"]}/report.html')
    return f'<a href="{place}">{text}</a>'


def _cell(
    result: Result, group: str, name: str, times: float, form: str
) -> str:
    value = (result.get(group) or {}).get(name)
    return '-' if value is None else form.format(times * value)


def _clouds(results: Sequence[Result]) -> Iterator[str]:
    """Settings of the simulated clouds, cloud by cloud."""
    first = {result['scenario']: result for result in reversed(results)}
    for name, result in reversed(first.items()):
        settings = [
            (
                says,
                'never'
                if result[key] is None
                else page.value_html(result[key]),
            )
            for key, says in _SETTINGS
        ]
        yield (
            f'<h2>Cloud {html.escape(name)}</h2>\n'
            f'<p>{html.escape(str(result["description"]))}</p>\n'
            f'{page.definition_list(settings)}'
        )


def _meanings() -> str:
    return f'<h2>What the words mean</h2>\n{page.definition_list(MEANINGS)}'
