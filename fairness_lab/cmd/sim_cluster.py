# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-sim cluster``: requests that wait, on simulated clouds."""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import pathlib
import statistics
import sys
from typing import Any

from fairness_lab.border_sim import reader as border_reader
from fairness_lab.border_sim import runs as border_runs
from fairness_lab.figures import border as border_figures
from fairness_lab.figures import progress
from fairness_lab.figures import queue_page
from fairness_lab.measures import files
from fairness_lab.queue_sim import attacks
from fairness_lab.queue_sim import experiments
from fairness_lab.queue_sim import market
from fairness_lab.queue_sim import order_texts
from fairness_lab.queue_sim import packing_traces
from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import runs as queue_runs
from fairness_lab.queue_sim import tenant_moves
from fairness_lab.queue_sim import workload
from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.model import wording

VERSION = 1
"""Of all files of JSON that these commands write."""

Json = dict[str, Any]


def _list(_options: argparse.Namespace) -> int:
    known = {
        'scenarios': {
            name: reader.find(name).description for name in reader.names()
        },
        'scenarios of border': {
            name: border_reader.find(name).cloud.description
            for name in border_reader.names()
        },
        'orders': plugins.describe_orders(),
        'victims': plugins.describe_victims(),
    }
    for title, entries in known.items():
        sys.stdout.write(f'{title}:\n')
        for name, text in sorted(entries.items()):
            sys.stdout.write(f'  {name}\n      {text}\n')
    return 0


def _run(options: argparse.Namespace) -> int:
    cloud = reader.find(options.scenario, _overrides(options))
    order_texts.load_order(options.order)
    order_texts.load_victims(options.victims)
    with files.new_directory(options.out) as directory:
        result = queue_runs.run(
            cloud,
            options.order,
            directory,
            progress.BatchProgress(),
            options.victims,
        )
        queue_page.write_run(directory, _titled(result), result)
    _say([result], options)
    return 0


def _compare(options: argparse.Namespace) -> int:
    names = options.scenarios or reader.STANDARD
    orders = options.orders or plugins.order_names()
    # Read once before the first run, so that nothing fails after hours.
    clouds = [reader.find(name, _overrides(options)) for name in names]
    for order in orders:
        order_texts.load_order(order)
    for victims in options.victims:
        order_texts.load_victims(victims)
    runs = []
    with files.new_directory(options.out) as directory:
        every = itertools.product(
            clouds, orders, options.victims or [queue_runs.VICTIMS]
        )
        for cloud, order, victims in every:
            place = pathlib.Path('runs', cloud.name, order)
            if options.victims:
                place /= victims
            (directory / place).mkdir(parents=True)
            result = queue_runs.run(
                cloud,
                order,
                directory / place,
                progress.BatchProgress(),
                victims,
            )
            queue_page.write_run(directory / place, _titled(result), result)
            runs.append({**result, 'directory': place.as_posix()})
        content = {'version': VERSION, 'runs': runs}
        files.write_json(directory / 'compare.json', content)
        titled = [(_titled(each), each) for each in runs]
        queue_page.write_compare(directory, titled)
    _say(runs, options)
    return 0


def _titled(result: Json) -> str:
    """Order of a run, and its victims if they are not the usual ones."""
    order, victims = str(result['order']), result['victims']
    return order if victims == queue_runs.VICTIMS else f'{order}, {victims}'


def _attack(options: argparse.Namespace) -> int:
    overrides = _overrides(options)
    first = reader.find(options.scenario, overrides)
    seeds = range(first.seed, first.seed + options.count)
    clouds = [
        reader.find(options.scenario, {**overrides, 'seed': str(seed)})
        for seed in seeds
    ]
    order = order_texts.load_order(options.order)
    names = options.attack or list(attacks.ATTACKS)
    meter, found = progress.BatchProgress(), []
    meter.begin(first.name, len(names) * len(clouds))
    for name, cloud in itertools.product(names, clouds):
        attack = attacks.ATTACKS[name]
        outcome = attacks.simulate_attack(cloud, attack, order)
        found.append(
            {
                'attack': name,
                'description': attack.description,
                'seed': cloud.seed,
                'gain': outcome.gain,
                **dataclasses.asdict(outcome),
            }
        )
        meter.tick(len(found))
    meter.end()
    with files.new_directory(options.out) as directory:
        content = {
            'version': VERSION,
            'scenario': first.name,
            'order': options.order,
            'attacks': found,
        }
        files.write_json(directory / 'attacks.json', content)
        columns = _gains(found)
        table = files.CsvTable(directory / 'attacks')
        table.add(columns)
        table.close()
    _say_gains(columns, options)
    return 0


def _gains(found: Sequence[Json]) -> dict[str, list[str]]:
    """Columns of the table, with a row for each attack."""
    rows = []
    for name, outcomes in itertools.groupby(found, lambda row: row['attack']):
        group = list(outcomes)
        gains = [row['gain'] for row in group]
        losses = [statistics.fmean(row[key] for row in group) for key in _LOST]
        rows.append(
            [
                name,
                f'{statistics.fmean(gains):.2f}',
                f'{max(gains):.2f}',
                *(f'{round(100 * each)}' for each in losses),
            ]
        )
    columns = [list(column) for column in zip(*rows, strict=True)]
    return dict(zip(('attack', *_GAINED), columns, strict=True))


def _say_gains(
    columns: Mapping[str, Sequence[str]], options: argparse.Namespace
) -> None:
    lines = [[*columns], *map(list, zip(*columns.values(), strict=True))]
    numeric = [False] + [True] * len(_GAINED)
    sys.stdout.write(f'{wording.format_table(lines, numeric)}{options.out}\n')


def _market(options: argparse.Namespace) -> int:
    found = market.tables(options.seed)
    return _write_tables(options, 'market', found, found)


def _pack(options: argparse.Namespace) -> int:
    if options.trace is not None:
        if options.experiment:
            raise exception.UnknownParameter(
                'a trace is an experiment of its own: name no other'
            )
        rows = packing_traces.table(options.trace, options.hosts, options.seed)
        tables = {'trace': rows}
        return _write_tables(
            options, 'packing', {'experiments': tables}, tables
        )
    names = options.experiment or list(experiments.EXPERIMENTS)
    for name in names:
        if name not in experiments.EXPERIMENTS:
            known = ', '.join(experiments.EXPERIMENTS)
            raise exception.UnknownParameter(
                f'there is no experiment {name!r}; there are {known}'
            )
    meter, found = progress.BatchProgress(), {}
    meter.begin('packing', len(names))
    for n, name in enumerate(names, 1):
        found[name] = experiments.EXPERIMENTS[name](options.seed)
        meter.tick(n)
    meter.end()
    return _write_tables(options, 'packing', {'experiments': found}, found)


def _tenants(options: argparse.Namespace) -> int:
    found = tenant_moves.tables(options.seed, options.count)
    return _write_tables(options, 'tenants', found, found)


def _border(options: argparse.Namespace) -> int:
    world = border_reader.find(options.scenario, _overrides(options))
    with files.new_directory(options.out) as directory:
        result = border_runs.compare(
            world,
            options.mover or border_runs.MOVERS,
            directory,
            progress.BatchProgress(),
        )
        border_figures.write(directory, result)
        rows = border_figures.rows(result)
        table = files.CsvTable(directory / 'border')
        table.add({key: [row[key] for row in rows] for key in rows[0]})
        table.close()
    lines = [[*rows[0]], *([*row.values()] for row in rows)]
    numeric = [False] + [True] * (len(rows[0]) - 1)
    sys.stdout.write(f'{wording.format_table(lines, numeric)}{options.out}\n')
    return 0


def _write_tables(
    options: argparse.Namespace,
    stem: str,
    content: Mapping[str, Any],
    tables: Mapping[str, list[Json]],
) -> int:
    """Write and print tables, and a file of JSON beside them."""
    with files.new_directory(options.out) as directory:
        about = {'version': VERSION, 'seed': options.seed, **content}
        files.write_json(directory / f'{stem}.json', about)
        for name, rows in tables.items():
            columns = {key: [row[key] for row in rows] for key in rows[0]}
            table = files.CsvTable(directory / name)
            table.add(columns)
            table.close()
            lines = [[*columns], *([*map(str, r.values())] for r in rows)]
            numeric = [not isinstance(each, str) for each in rows[0].values()]
            sys.stdout.write(f'{wording.format_table(lines, numeric)}\n')
    sys.stdout.write(f'{options.out}\n')
    return 0


_LOST = ('neighbours_lose', 'others_lose')
_GAINED = ('gain', 'largest gain', 'neighbours lose %', 'others lose %')


def _overrides(options: argparse.Namespace) -> dict[str, str]:
    found = dict(options.set)
    if options.seed is not None:
        found['seed'] = str(options.seed)
    return found


def _hours(name: str) -> Callable[[Json], str]:
    def read(result: Json) -> str:
        seconds = result['waiting'][name]
        return '-' if seconds is None else f'{seconds / workload.HOUR_S:.2f}'

    return read


def _percent(group: str, name: str) -> Callable[[Json], str]:
    def read(result: Json) -> str:
        part = result[group][name]
        return '-' if part is None else f'{100 * part:.1f}'

    return read


_SHOWN: Mapping[str, Callable[[Json], str]] = {
    'share error %': _percent('share_error', 'mean'),
    'who waits %': _percent('share_error_wanting', 'mean'),
    'used %': _percent('utilisation', 'settled_mean'),
    'jain %': _percent('jain', 'mean'),
    'waiting h': _hours('mean_s'),
    'p95 h': _hours('p95_s'),
    'longest h': _hours('longest_s'),
    'expired': lambda result: str(result['waiting']['expired']),
}
"""Columns for people, of what is shown of each result."""


def _left(name: str, times: float, digits: int) -> Callable[[Json], str]:
    def read(result: Json) -> str:
        found = (result['made_room'] or {}).get(name)
        return '-' if found is None else f'{times * found:.{digits}f}'

    return read


_LEFT: Mapping[str, Callable[[Json], str]] = {
    'left': _left('servers', 1, 0),
    'work lost %': _left('lost_part', 100, 2),
    'follows share': _left('follows_share', 1, 2),
}
"""The same of clouds some of whose servers make room."""


def _say(results: Sequence[Json], options: argparse.Namespace) -> None:
    first, shown = ['scenario', 'order'], dict(_SHOWN)
    if any(result['made_room'] for result in results):
        first.append('victims')
        shown.update(_LEFT)
    lines = [[*first, *shown]]
    for result in results:
        cells = [read(result) for read in shown.values()]
        lines.append([*(result[key] for key in first), *cells])
    numeric = [False] * len(first) + [True] * len(shown)
    sys.stdout.write(f'{wording.format_table(lines, numeric)}{options.out}\n')


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    'cluster list': _list,
    'cluster run': _run,
    'cluster compare': _compare,
    'cluster attack': _attack,
    'cluster market': _market,
    'cluster pack': _pack,
    'cluster tenants': _tenants,
    'cluster border': _border,
}
"""Functions by command."""
