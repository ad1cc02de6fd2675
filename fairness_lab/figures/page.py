# SPDX-License-Identifier: Apache-2.0

"""Reports of simulated runs: pictures, and a page that needs nothing else."""

import base64
from collections.abc import Mapping
from collections.abc import Sequence
import html
import pathlib
from typing import Any

from fairness_lab.figures import report_text
from fairness_lab.figures import simulated
from fairness_lab.measures import comparison
from fairness_lab.measures import series_file

Result = Mapping[str, Any]

_STYLE = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 75em;
       color: #222; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 1.6em; }
img { max-width: 100%; }
table { border-collapse: collapse; }
td, th { padding: .25em .9em .25em 0; text-align: right;
         border-bottom: 1px solid #ddd; }
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
    side = simulated.Run(headline(result), result, series_file.read(series))
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
        simulated.Run(
            name_of(result),
            result,
            series_file.read(place) if place else series_file.NOTHING,
        )
        for result, place in zip(results, places, strict=True)
    ]
    image = comparison.compare(sides)
    (directory / 'compare.png').write_bytes(image)
    scenarios = ', '.join(
        dict.fromkeys(str(result.get('scenario')) for result in results)
    )
    title = f'{scenarios}: {len(results)} runs compared'
    (directory / 'report.html').write_text(
        page(title, results, [('All runs', image)]), encoding='utf-8'
    )


def headline(result: Result) -> str:
    """Give the sentence above a run."""
    return f'{result.get("scenario")}: {name_of(result)}'


def name_of(result: Result) -> str:
    """Name what steered a run."""
    policy = result.get('policy') or 'none'
    if policy == 'none':
        return 'nobody steers'
    return f'{policy}, {result.get("metric")}'


def page(
    title: str,
    results: Sequence[Result],
    images: Sequence[tuple[str, bytes]],
) -> str:
    """Build a page that needs no other file and no network.

    :param images: captions and PNG images.
    """
    shown = '\n'.join(
        f'<h2>{html.escape(caption)}</h2>\n<img alt="{html.escape(caption)}"'
        f' src="data:image/png;base64,{base64.b64encode(image).decode()}">'
        for caption, image in images
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'</head><body>\n<h1>{html.escape(title)}</h1>\n'
        f'{_table(results)}\n{shown}\n{report_text.scenarios(results)}\n'
        f'{report_text.meanings()}\n'
        '</body></html>\n'
    )


def _table(results: Sequence[Result]) -> str:
    head = ''.join(
        f'<th>{html.escape(text)}</th>'
        for text in ('run', *(item.says for item in comparison.QUANTITIES))
    )
    rows = '\n'.join(
        f'<tr><td>{html.escape(headline(result))}</td>{_cells(result)}</tr>'
        for result in results
    )
    return f'<table><tr>{head}</tr>\n{rows}\n</table>'


def _cells(result: Result) -> str:
    cells = []
    for item in comparison.QUANTITIES:
        value = item.of(result)
        text = '-' if value is None else item.form.format(value)
        cells.append(f'<td class="{item.judge(value)}">{text}</td>')
    return ''.join(cells)
