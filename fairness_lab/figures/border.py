# SPDX-License-Identifier: Apache-2.0

"""Report of a border between batch and cloud: a picture, and a page."""

from collections.abc import Mapping
from collections.abc import Sequence
import html
import pathlib
from typing import Any

from fairness_lab.figures import page
from fairness_lab.figures import style
from fairness_lab.measures import series

Result = Mapping[str, Any]

HOUR_S = 3600.0
DAY_S = 86400.0

_SETTINGS = (
    ('seed', 'seed of random numbers'),
    ('package_version', 'version of nova-fairness'),
    ('duration_s', 'length, seconds'),
    ('cycle_s', 'time between two plans, seconds'),
    ('half_life_s', 'half-life of use, seconds'),
    ('hosts', 'hosts'),
    ('cores', 'cores of all hosts'),
    ('jobs', 'jobs'),
    ('requests', 'requests of the cloud'),
    ('wanted', 'core-hours that are asked for'),
    ('boot_s', 'boot of a host that changed sides, seconds'),
    ('migrate_s', 'duration of a live migration, seconds'),
    ('shares_of_both_sides', 'shares go by the use of both sides'),
)

MEANINGS: Sequence[tuple[str, str]] = (
    (
        'demand',
        'The planner of the service moves hosts as both queues demand.',
    ),
    (
        'operator',
        (
            'Partition Director by hand: at some hours of the day hosts go '
            'to the side that waits for more; servers that are left on them '
            'after a time to live are killed.'
        ),
    ),
    ('fixed-N', 'The cloud has N hosts all the time.'),
    (
        'work done',
        (
            'Core-hours that jobs and servers ran within the time, without '
            'those of servers that were killed or made room.'
        ),
    ),
    (
        'beside the best fixed border',
        'How much more work was done than with the best border of all.',
    ),
    (
        'off pledges',
        (
            'Largest distance of the part that a group had of all use from '
            'its pledge, in points; use fades with the half-life, and counts '
            'after two of them.'
        ),
    ),
)


def write(directory: pathlib.Path, result: Result) -> None:
    """Write ``border.png`` and ``report.html``.

    :param directory: that has the tables.
    :param result: content of ``border.json``.
    :raises BadSeries: if a table cannot be read; names it.
    """
    image = picture(directory, result)
    (directory / 'border.png').write_bytes(image)
    title = f'{result["scenario"]}: a border between batch and cloud'
    settings = [
        (says, page.value_html(result[key]))
        for key, says in _SETTINGS
        if key in result
    ]
    text = page.document(
        title,
        f'<p>{html.escape(str(result["description"]))}</p>',
        _table(result),
        page.pictures([('Both sides over time', image)]),
        f'<h2>What was simulated</h2>\n{page.definition_list(settings)}',
        f'<h2>What the words mean</h2>\n{page.definition_list(MEANINGS)}',
    )
    (directory / 'report.html').write_text(text, encoding='utf-8')


def rows(result: Result) -> list[dict[str, str]]:
    """Cells of each run, by heading."""
    best = {each['name']: each for each in result['runs']}.get(
        result['best_fixed']
    )
    found = []
    for run in result['runs']:
        more, waits = '-', run['waiting']
        if best and best['work']['total']:
            part = run['work']['total'] / best['work']['total'] - 1
            more = f'{100 * part:+.1f} %'
        off = run['pledge_error']
        found.append(
            {
                'border': str(run['name']),
                'work done': f'{100 * run["work"]["part"]:.1f} %',
                'beside the best fixed border': more,
                'moves a host a day': f'{run["moves"]["a_host_a_day"]:.2f}',
                'killed': f'{run["killed"]}',
                'expired': f'{run["expired"]}',
                'job waits, p95': _hours(waits['batch']['p95_s']),
                'server waits, p95': _hours(waits['cloud']['p95_s']),
                'off pledges': f'{100 * off["mean"]:.1f}' if off else '-',
            }
        )
    return found


def _hours(seconds: float | None) -> str:
    return '-' if seconds is None else f'{seconds / HOUR_S:.2f} h'


def _table(result: Result) -> str:
    told = rows(result)
    head = ''.join(f'<th>{html.escape(each)}</th>' for each in told[0])
    lines = [
        ''.join(f'<td>{html.escape(cell)}</td>' for cell in row.values())
        for row in told
    ]
    body = '\n'.join(f'<tr>{line}</tr>' for line in lines)
    return f'<table><tr>{head}</tr>\n{body}\n</table>'


def picture(directory: pathlib.Path, result: Result) -> bytes:
    """Draw runs over time, and the results of all fixed borders.

    :returns: a PNG image.
    """
    names = [each['name'] for each in result['runs']]
    best = result['best_fixed']
    shown = [name for name in ('demand', 'operator') if name in names]
    shown += [best] if best else []
    drawn = style.figure(14, 3.2 * (len(shown) + 1))
    grid = drawn.add_gridspec(len(shown) + 1, 1)
    for place, name in enumerate(shown):
        axes = drawn.add_subplot(grid[place, 0])
        _draw_run(axes, name, directory, result)
    _draw_work(drawn.add_subplot(grid[len(shown), 0]), result)
    style.write_headline(drawn, f'{result["scenario"]}: who moves the border')
    return style.to_png(drawn)


def _draw_run(
    axes: style.Axes, name: str, directory: pathlib.Path, result: Result
) -> None:
    """Draw used cores of both sides, what waits, and the border."""
    table = series.rows(directory / f'series-{name}.csv')
    days = [series.number(row['time_s']) / DAY_S for row in table]

    def column(key: str) -> list[float]:
        return [series.number(row[key]) for row in table]

    cores = result['cores']
    style.write_title(axes, f'{name}: cores in use')
    axes.stackplot(
        days,
        column('cloud_used'),
        column('batch_used'),
        colors=(style.PALETTE[0], style.PALETTE[1]),
        alpha=0.75,
        labels=('cloud', 'batch'),
    )
    border = [cores / result['hosts'] * each for each in column('cloud_hosts')]
    axes.plot(days, border, color=style.FAIR, lw=1.6, label='border')
    axes.axhline(cores, color=style.QUIET, lw=0.9, ls=':')
    axes.set_ylim(0, 1.05 * cores)
    axes.margins(x=0)
    axes.set_xlabel('day')
    axes.legend(fontsize=style.SMALL, frameon=False, loc='upper right')
    style.remove_ornaments(axes)


def _draw_work(axes: style.Axes, result: Result) -> None:
    """Draw work done with each fixed border, and lines of the movers."""
    style.write_title(axes, 'Work done, of all cores [%]')
    fixed = [run for run in result['runs'] if run['cloud_hosts'] is not None]
    x = [run['cloud_hosts'] for run in fixed]
    lower = [_used_fraction(result, run, 'cloud') for run in fixed]
    upper = [_used_fraction(result, run, 'batch') for run in fixed]
    axes.bar(x, lower, 0.7, color=style.PALETTE[0], label='cloud')
    axes.bar(
        x, upper, 0.7, bottom=lower, color=style.PALETTE[1], label='batch'
    )
    for place, run in enumerate(result['runs']):
        if run['cloud_hosts'] is None:
            axes.axhline(
                100 * run['work']['part'],
                color=style.PALETTE[2 + place],
                lw=1.8,
                label=run['name'],
            )
    axes.set_xlabel('hosts of the cloud, if the border is fixed')
    axes.set_ylim(0, 103)
    axes.legend(fontsize=style.SMALL, frameon=False, ncols=4)
    style.remove_ornaments(axes)


def _used_fraction(result: Result, run: Result, side: str) -> float:
    capacity = float(result['cores'] * result['duration_s']) / HOUR_S
    return 100 * float(run['work'][side]) / capacity
