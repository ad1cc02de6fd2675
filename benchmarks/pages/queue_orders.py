# SPDX-License-Identifier: Apache-2.0

"""Tables of orders, patience and estimates, of what the simulator wrote.

    python -m benchmarks.pages.queue_orders

reads what ``benchmarks/results/queue`` has of each standard cloud, and of
patience and estimates in folders beside it, and writes
``doc/source/contributor/order-evidence.inc``, ``order-bars.inc``,
``peers-evidence.inc``, ``patience-evidence.inc``, ``estimates-evidence.inc``
and, of ``spot.json`` and ``spot-without.json``, ``preemption-choices.inc``,
and of ``spot-means.json`` ``preemption-means.inc``. Of ``over-clouds.json``,
which ``benchmarks/queue/over_clouds.py`` makes, it writes ``order-clouds.inc``
and ``peers-clouds.inc``; of the folder ``seeds``, ``order-seeds.inc`` and
``preemption-seeds.inc``.
"""

from collections.abc import Callable
import itertools
import json
import pathlib

from fairness_lab.queue_sim import reader

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks' / 'results' / 'queue'
PAGES = TOP / 'doc' / 'source' / 'contributor'

HEAD = (
    'Cloud',
    'Order',
    'Error of shares %',
    'Utilisation %',
    'Mean wait h',
    'Longest h',
    'Expired',
)
BARS_HEAD = (
    'Order',
    'Clouds within 5 %',
    'Largest error %',
    'Mean error %',
    'Half of the best peer',
    'Most even between users',
    'Least even (Jain) %',
    'Utilisation below the fullest, points',
    'Longest h',
    'Expired',
)
WITHIN = 0.05
"""Of the error of shares, and of the utilisation that it may cost."""

ESTIMATES_HEAD = (
    'Cloud',
    'Requests',
    'By p50 %, not corrected',
    'By p50 %',
    'By p90 %, not corrected',
    'By p90 %',
)
CHOICES_HEAD = (
    'Choice of victims',
    'Servers left',
    'Work lost %',
    'Follows shares',
    'Error of shares %',
    'Utilisation %',
)
MEANS_HEAD = (
    'Choice of victims',
    'Kept free %',
    'Notice s',
    'Save their work %',
    *CHOICES_HEAD[1:],
)
OVER_CLOUDS = {
    'share_error': ('Error of shares %', 100),
    'jain': ('Evenness of users (Jain) %', 100),
    'utilisation': ('Utilisation %', 100),
    'wait_mean_s': ('Mean wait h', 1 / 3600),
}
"""Title and factor by measure."""

OVER_VICTIMS = {
    'servers_left': ('Servers left', 1),
    'work_lost': ('Work lost %', 100),
    'follows_share': ('Follows shares %', 100),
    'share_error': OVER_CLOUDS['share_error'],
    'utilisation': OVER_CLOUDS['utilisation'],
}
"""The same for choices of victims."""

COLUMNS = '.. list-table::\n   :header-rows: 1\n'


def row(run):
    """Cells of a run."""
    waiting = run['waiting']
    return (
        run['scenario'],
        f'``{run["order"]}``',
        f'{100 * run["share_error"]["mean"]:.1f}',
        f'{100 * run["utilisation"]["settled_mean"]:.1f}',
        f'{waiting["mean_s"] / 3600:.1f}',
        f'{waiting["longest_s"] / 3600:.1f}',
        str(waiting['expired']),
    )


def runs(paths):
    """All that is recorded in some files."""
    return [
        run
        for path in filter(pathlib.Path.exists, paths)
        for run in json.loads(path.read_text('utf-8'))['runs']
    ]


def patient(run):
    """Cells of a run, with its patience."""
    cloud, order, *others = row(run)
    return (cloud, order, f'{run["patience_s"] / 3600:g}', *others)


def standard():
    """Runs of all orders on all standard clouds."""
    return runs(RESULTS / f'{name}.json' for name in sorted(reader.STANDARD))


def orders():
    """The table of orders."""
    return text([HEAD, *(row(run) for run in standard())])


def error(run):
    """Mean error of shares after two half-lives, 0 to 1."""
    return run['share_error']['mean']


def used(run):
    """Mean utilisation after two half-lives, 0 to 1."""
    return run['utilisation']['settled_mean']


def even(run):
    """Jain's index of users beside what they are entitled to, 0 to 1."""
    return run['jain']['mean']


def bars():
    """The table of what each order keeps, that with the least error first."""
    found = {
        order: list(group)
        for order, group in itertools.groupby(
            sorted(standard(), key=lambda run: run['order']),
            key=lambda run: run['order'],
        )
    }
    first = sorted(found, key=lambda order: max(map(error, found[order])))
    return text([BARS_HEAD, *(kept(order, found) for order in first)])


def kept(order, found):
    """Cells of an order, beside all others."""
    own = found[order]
    others = {run['scenario']: [] for group in found.values() for run in group}
    for name, group in found.items():
        for run in group if name != order else ():
            others[run['scenario']].append(run)
    errors = [error(run) for run in own]
    beside = [(run, others[run['scenario']]) for run in own]
    lost = [max(map(used, peers)) - used(run) for run, peers in beside]
    most = [even(run) > max(map(even, peers)) for run, peers in beside]
    waits = [run['waiting'] for run in own]
    return (
        f'``{order}``',
        f'{sum(each <= WITHIN for each in errors)} of {len(own)}',
        f'{100 * max(errors):.1f}',
        f'{100 * sum(errors) / len(own):.1f}',
        f'{sum(itertools.starmap(is_half, beside))} of {len(own)}',
        f'{sum(most)} of {len(own)}',
        f'{100 * min(map(even, own)):.1f}',
        f'{100 * max(lost):.1f}',
        f'{max(each["longest_s"] for each in waits) / 3600:.1f}',
        str(sum(each['expired'] for each in waits)),
    )


def is_half(run, peers):
    """Whether a run has half the best peer's error, and is nearly as full."""
    best = min(peers, key=error)
    is_full = used(run) >= (1 - WITHIN) * used(best)
    return error(run) <= error(best) / 2 and is_full


def peers():
    """The table of orders of other systems, beside ours on the same clouds."""
    found = runs(sorted((RESULTS / 'peers').glob('*.json')))
    clouds = {run['scenario'] for run in found}
    ours = [run for run in standard() if run['order'] == 'fair_tree']
    found += [run for run in ours if run['scenario'] in clouds]
    found.sort(key=lambda run: (run['scenario'], run['order']))
    cells = [(*row(run), f'{100 * even(run):.1f}') for run in found]
    return text([(*HEAD, 'Evenness of users (Jain) %'), *cells])


def patience():
    """The table of patience, the most patient last."""
    found = runs((RESULTS / 'patience').glob('*.json'))
    found.sort(key=lambda r: (r['scenario'], r['order'], r['patience_s']))
    cloud, order, *others = HEAD
    head = (cloud, order, 'Patience h', *others)
    return text([head, *(patient(run) for run in found)])


def estimates():
    """The table of estimates."""
    paths = sorted((RESULTS / 'estimates').glob('*.json'))
    found = [json.loads(path.read_text('utf-8')) for path in paths]
    return text([ESTIMATES_HEAD, *(estimated(run) for run in found)])


def estimated(run):
    """Cells of a run whose estimates were judged."""
    judged = run['estimates']
    parts = ('by_p50_alone', 'by_p50', 'by_p90_alone', 'by_p90')
    return (
        run['scenario'],
        str(judged['count']),
        *(f'{100 * judged[part]:.0f}' for part in parts),
    )


def choices():
    """The table of victims, and the cloud without preemptible servers."""
    without = json.loads((RESULTS / 'spot-without.json').read_text('utf-8'))
    found = [choice(run) for run in runs([RESULTS / 'spot.json'])]
    return text([CHOICES_HEAD, *found, choice(without)])


def means():
    """The table of what else loses less than another choice."""
    plain = ('least', 'youngest')
    found = [e for e in runs([RESULTS / 'spot.json']) if e['victims'] in plain]
    found += runs([RESULTS / 'spot-means.json'])
    return text([MEANS_HEAD, *map(meant, found)])


def meant(run):
    """Cells of a run, with what was set for it."""
    name, *cells = choice(run)
    return (
        name,
        f'{100 * run.get("kept_free", 0):g}',
        f'{run["notice_s"]:g}',
        f'{100 * run.get("saves", 0):g}',
        *cells,
    )


def choice(run):
    """Cells of a run in which servers made room."""
    made, name = run['made_room'], f'``{run["victims"]}``'
    left = ['-'] * 3
    if made is None:
        name = 'without preemptible servers'
    else:
        left = [
            str(made['servers']),
            f'{100 * made["lost_part"]:.1f}',
            f'{made["follows_share"]:.2f}',
        ]
    return (
        name,
        *left,
        f'{100 * run["share_error"]["mean"]:.1f}',
        f'{100 * run["utilisation"]["settled_mean"]:.1f}',
    )


def over_clouds(name):
    """The table of means over clouds, and of differences.

    :param name: of the set of clouds, in ``over-clouds.json``.
    """
    [cloud] = [
        each
        for each in compared(RESULTS / 'over-clouds.json')
        if each['scenario'] == name
    ]
    head = ('Order', *titles(OVER_CLOUDS))
    return text([head, *differences(cloud, OVER_CLOUDS)])


def seeds():
    """The table of orders, each cloud with ten seeds."""
    found = [
        (cloud['scenario'], *cells)
        for name in sorted(reader.STANDARD)
        for cloud in compared(RESULTS / 'seeds' / f'{name}.json')
        for cells in differences(cloud, OVER_CLOUDS)
    ]
    return text([('Cloud', 'Order', *titles(OVER_CLOUDS)), *found])


def victims():
    """The table of choices of victims, with ten seeds."""
    [cloud] = compared(RESULTS / 'seeds' / 'spot.json')
    head = ('Choice of victims', *titles(OVER_VICTIMS))
    return text([head, *differences(cloud, OVER_VICTIMS, 'victims')])


def compared(path):
    """Clouds of a file in the form of ``spread.json``; none without it."""
    if not path.exists():
        return []
    return json.loads(path.read_text('utf-8'))['clouds']


def titles(measures):
    """Titles of the columns of some measures."""
    return [title for title, _ in measures.values()]


def differences(cloud, measures, title='name'):
    """Cells of each run of a cloud: its title, and each measure."""
    return [
        (
            f'``{run[title]}``',
            *(
                beside(run['measures'][measure], times)
                for measure, (_, times) in measures.items()
            ),
        )
        for run in cloud['runs']
    ]


def beside(measured, times):
    """Mean, and the interval of the difference from the first order."""
    mean, apart = f'{times * measured["mean"]:.1f}', measured['difference']
    if apart is None:
        return mean
    low, high = (f'{times * apart[key]:+.1f}' for key in ('low', 'high'))
    noise = ', noise' if apart['verdict'] == 'noise' else ''
    return f'{mean} ({low} to {high}{noise})'


def text(rows):
    """A whole table."""
    lines = [COLUMNS]
    for cells in rows:
        first, *others = cells
        lines.append(f'   * - {first}')
        lines += [f'     - {cell}' for cell in others]
    return '\n'.join(lines) + '\n'


TABLES: dict[str, Callable[[], str]] = {
    'order-evidence': orders,
    'order-bars': bars,
    'peers-evidence': peers,
    'patience-evidence': patience,
    'estimates-evidence': estimates,
    'preemption-choices': choices,
    'preemption-means': means,
    'order-clouds': lambda: over_clouds('standard'),
    'peers-clouds': lambda: over_clouds('peers'),
    'order-seeds': seeds,
    'preemption-seeds': victims,
}
"""By the name of the page."""


if __name__ == '__main__':
    for name, table in TABLES.items():
        (PAGES / f'{name}.inc').write_text(table(), encoding='utf-8')
