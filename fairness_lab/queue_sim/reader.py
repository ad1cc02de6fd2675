# SPDX-License-Identifier: Apache-2.0

"""Scenarios of clouds whose requests wait: YAML to a cloud and its stream."""

from collections.abc import Mapping
import pathlib
import types

import numpy as np

from fairness_lab.queue_sim import streams
from fairness_lab.queue_sim import traces
from fairness_lab.queue_sim import workload
from fairness_lab.scenario import yaml
from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import planner
from nova_fairness.planners.preemption import watermark

FOLDER = pathlib.Path(__file__).parents[1] / 'scenarios' / 'cluster'
"""Of the scenarios that come with the simulator."""

STANDARD = (
    'steady',
    'bursty',
    'heavy-tailed',
    'one-hoarder',
    'thousand-tiny',
    'large-and-small',
    'idle-team-returns',
    'churn',
)
"""Those that orders are compared on."""

MOST_HOSTS = 100_000
MOST_REQUESTS = 10_000_000
_MOST_PROJECTS = 100_000
_MOST_AMOUNT = 1_000_000
_MOST_DAYS = 3660.0

_PATIENCE_H = planner.Backfill().patience_s / workload.HOUR_S

_AS_WRITTEN: Mapping[str, str] = types.MappingProxyType({})


def names() -> tuple[str, ...]:
    """Names of the scenarios that come with the simulator."""
    return tuple(sorted(path.stem for path in FOLDER.glob('*.yaml')))


def load_scenario(
    name: str, folder: pathlib.Path, overrides: Mapping[str, str]
) -> yaml.YamlValue:
    """Read what a scenario says.

    :param name: of one in the folder, or the path of a YAML file.
    :param overrides: YAML by key, with dots.
    :raises BadScenario: if there is none, or it is no YAML.
    """
    path = folder / f'{name}.yaml'
    names = sorted(each.stem for each in folder.glob('*.yaml'))
    if name not in names:
        path = pathlib.Path(name)
        if path.suffix not in ('.yaml', '.yml'):
            raise exception.BadScenario(
                f'there is no scenario {name}: expected a path that ends in'
                f' .yaml or one of {", ".join(names)}'
            )
    whole = yaml.load(path)
    for key, text in overrides.items():
        yaml.override(whole, key, text)
    return whole


def find(
    name: str, overrides: Mapping[str, str] = _AS_WRITTEN
) -> workload.QueuedCloud:
    """Read a scenario that comes with the simulator, or one in a file.

    :param name: its name, or the path of a YAML file.
    :param overrides: YAML by key, with dots.
    :raises BadScenario: if there is none, or it is wrong; says file and line.
    :raises BadTrace: if its trace is wrong; says file, line and column.
    """
    return _read_cloud(load_scenario(name, FOLDER, overrides))


def _read_cloud(whole: yaml.YamlValue) -> workload.QueuedCloud:
    section = whole.section()
    description = section.need('description', yaml.YamlValue.text)
    seed = section.take('seed', yaml.YamlValue.integer, 1)
    days = section.need('days', read_days)
    cycle_s = section.take('cycle_s', yaml.YamlValue.positive, 60.0)
    half_life_h = section.take(
        'half_life_hours', yaml.YamlValue.positive, 168.0
    )
    wait_h = section.take('longest_wait_hours', yaml.YamlValue.positive, None)
    patience_h = section.take(
        'backfill_patience_hours', yaml.YamlValue.number, _PATIENCE_H
    )
    estimates_h = section.take(
        'estimates_every_hours', yaml.YamlValue.positive, None
    )
    notice_s = section.take('notice_s', yaml.YamlValue.number, 600.0)
    marks, saves = (
        _read_watermarks(section),
        section.take('saves', _read_fraction, 0.0),
    )
    all_run = section.take('with_preemptible', yaml.YamlValue.yes_or_no, True)
    hosts = section.need('hosts', read_hosts)
    owners, stream = read_owners_and_requests(section, hosts, days, seed)
    if not all_run:
        stream = stream.without_preemptible()
    return workload.QueuedCloud(
        name=whole.path.stem,
        description=description,
        seed=seed,
        duration_s=days * workload.DAY_S,
        cycle_s=cycle_s,
        half_life_s=half_life_h * workload.HOUR_S,
        longest_wait_s=None if wait_h is None else wait_h * workload.HOUR_S,
        patience_s=patience_h * workload.HOUR_S,
        estimates_s=(
            None if estimates_h is None else estimates_h * workload.HOUR_S
        ),
        hosts=hosts,
        owners=owners,
        stream=stream,
        notice_s=notice_s,
        marks=marks,
        saves=saves,
    )


def read_owners_and_requests(
    section: yaml.Section, hosts: cluster.Amounts, days: float, seed: int
) -> tuple[workload.Owners, workload.Stream]:
    """Read owners of hosts and their requests: ``projects`` or ``trace``.

    :param section: whose other keys were all read.
    :param hosts: (h, c) capacity.
    :param days: length of the run.
    :param seed: of what is drawn.
    :raises BadScenario: if the section is wrong, or has other keys.
    :raises BadTrace: if its trace is wrong.
    """
    trace = section.take('trace', _read_trace, None)
    if trace is not None:
        section.finish()
        memory_mib, vcpus = hosts.max(axis=0).tolist()
        return traces.read(trace, workload.Size(vcpus, memory_mib))
    recipes = section.need('projects', lambda v: _read_recipes(v, days))
    section.finish()
    stream = streams.draw_stream(recipes, hosts.sum(axis=0), seed)
    return streams.owners(recipes), stream


def _read_trace(value: yaml.YamlValue) -> traces.Trace:
    section = value.section()
    found = traces.Trace(
        value.path.parent / section.need('file', yaml.YamlValue.text),
        section.take('shares', _read_shares, {}),
        section.take('memory_gib_per_vcpu', yaml.YamlValue.positive, 4.0),
        section.take('time_limits', yaml.YamlValue.yes_or_no, True),
    )
    section.finish()
    return found


def _read_shares(value: yaml.YamlValue) -> dict[str, float]:
    return {name: each.number() for name, each in value.entries().items()}


def read_days(value: yaml.YamlValue) -> float:
    """Length of a run."""
    days = value.positive()
    if days > _MOST_DAYS:
        raise value.wrong(f'at most {_MOST_DAYS:g} days')
    return days


def _read_count(value: yaml.YamlValue) -> int:
    return value.integer(1, _MOST_AMOUNT)


def _read_memory_mib(value: yaml.YamlValue) -> int:
    """MiB of a number of GiB."""
    memory_mib = round(value.positive() * workload.MIB_PER_GIB)
    if not 1 <= memory_mib <= _MOST_AMOUNT * workload.MIB_PER_GIB:
        raise value.wrong(f'1/1024 to {_MOST_AMOUNT} GiB')
    return memory_mib


def read_hosts(value: yaml.YamlValue) -> cluster.Amounts:
    """(h, c) capacity of each host, kind after kind."""
    rows: list[list[int]] = []
    for kind in value.items() if value.is_list() else [value]:
        section = kind.section()
        count = section.need('count', lambda each: each.integer(1, MOST_HOSTS))
        vcpus = section.need('vcpus', _read_count)
        memory_mib = section.need('memory_gib', _read_memory_mib)
        section.finish()
        rows += [[memory_mib, vcpus]] * count
    if not 1 <= len(rows) <= MOST_HOSTS:
        raise value.wrong(f'1 to {MOST_HOSTS} hosts')
    return np.array(rows, dtype=np.int64)


def _read_recipes(
    value: yaml.YamlValue, days: float
) -> list[streams.StreamRecipe]:
    recipes, seen = [], set()
    for item in value.items():
        each = _read_recipe(item, days)
        if each.name in seen:
            raise item.wrong(f'every name once, and {each.name} came before')
        seen.add(each.name)
        recipes.append(each)
    if not 1 <= sum(each.count for each in recipes) <= _MOST_PROJECTS:
        raise value.wrong(f'1 to {_MOST_PROJECTS} projects')
    return recipes


def _read_recipe(value: yaml.YamlValue, days: float) -> streams.StreamRecipe:
    section = value.section()
    spreads = {each.value: each for each in streams.LifetimeDistribution}
    found = streams.StreamRecipe(
        name=section.need('name', yaml.YamlValue.name),
        count=section.take('count', _read_count, 1),
        share=section.take('share', yaml.YamlValue.number, 1.0),
        users=section.take('users', _read_count, 1),
        demand=section.need('demand', yaml.YamlValue.positive),
        sizes=section.need('sizes', _read_sizes),
        lifetime_s=section.need('lifetime_hours', yaml.YamlValue.positive)
        * workload.HOUR_S,
        spread=section.take(
            'lifetimes',
            lambda each: spreads[each.one_of(tuple(spreads))],
            streams.LifetimeDistribution.EXPONENTIAL,
        ),
        burst=section.take('burst', _read_burst, 1.0),
        active_periods_s=section.take(
            'active_days',
            lambda each: _read_active_periods(each, days),
            ((0.0, days * workload.DAY_S),),
        ),
        deleted=section.take('deleted', _read_fraction, 0.0),
        preemptible=section.take(
            'preemptible', yaml.YamlValue.yes_or_no, False
        ),
    )
    section.finish()
    return found


def _read_sizes(
    value: yaml.YamlValue,
) -> tuple[tuple[workload.Size, float], ...]:
    found: dict[workload.Size, float] = {}
    for item in value.items():
        section = item.section()
        size = workload.Size(
            section.need('vcpus', _read_count),
            section.need('memory_gib', _read_memory_mib),
            section.take('servers', _read_count, 1),
        )
        if size in found:
            raise item.wrong(f'every size once, and {size.name} came before')
        found[size] = section.take('weight', yaml.YamlValue.positive, 1.0)
        section.finish()
    if not found:
        raise value.wrong('at least one size')
    return tuple(found.items())


def _read_burst(value: yaml.YamlValue) -> float:
    return value.number(1.0)


def _read_fraction(value: yaml.YamlValue) -> float:
    part = value.number()
    if part > 1:
        raise value.wrong('a number from 0 to 1')
    return part


def _read_watermarks(section: yaml.Section) -> watermark.WatermarkBounds:
    upper = section.take('kept_free', _read_fraction, 0.0)
    lower = section.take(
        'freed', lambda each: _read_lower_watermark(each, upper), 0.0
    )
    return watermark.WatermarkBounds(upper, lower)


def _read_lower_watermark(value: yaml.YamlValue, upper: float) -> float:
    fraction = value.number()
    if fraction > upper:
        raise value.wrong(f'a number from 0 to kept_free, {upper:g}')
    return fraction


def _read_active_periods(
    value: yaml.YamlValue, days: float
) -> tuple[tuple[float, float], ...]:
    """Begin and end of each time before the end of the run, seconds."""
    found: list[tuple[float, float]] = []
    last = 0.0
    for item in value.items():
        match [each.number() for each in item.items()]:
            case [begin, end] if last <= begin < end:
                found.append((begin, end))
                last = end
            case _:
                raise item.wrong('pairs of days, ascending')
    within = [(begin, min(end, days)) for begin, end in found if begin < days]
    if not within:
        raise value.wrong(f'a pair that begins before day {days:g}')
    return tuple(
        (begin * workload.DAY_S, end * workload.DAY_S) for begin, end in within
    )
