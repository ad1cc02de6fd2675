# SPDX-License-Identifier: Apache-2.0

"""Read scenarios of a border from YAML: hosts, both sides, rules."""

from collections.abc import Mapping
import dataclasses
import pathlib
import types

import numpy as np

from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from fairness_lab.scenario import yaml
from nova_fairness.model import cluster
from nova_fairness.planners.border import demand
from nova_fairness.planners.fairqueue import planner

FOLDER = pathlib.Path(__file__).parents[1] / 'scenarios' / 'border'
"""Of the scenarios that come with the simulator."""

_AS_WRITTEN: Mapping[str, str] = types.MappingProxyType({})
_PATIENCE_H = planner.Backfill().patience_s / workload.HOUR_S
_LIMITS = 100
"""Key of chance: those below are of the stream."""

_JOBS = 1_000_003
"""Jobs are drawn of another seed than requests."""


def names() -> tuple[str, ...]:
    """Names of the scenarios that come with the simulator."""
    return tuple(sorted(path.stem for path in FOLDER.glob('*.yaml')))


def find(
    name: str, overrides: Mapping[str, str] = _AS_WRITTEN
) -> world_module.World:
    """Read a scenario that comes with the simulator, or one in a file.

    :param name: its name, or the path of a YAML file.
    :param overrides: YAML by key, with dots.
    :raises BadScenario: if there is none, or it is wrong; says file and line.
    :raises BadTrace: if a trace is wrong; says file, line and column.
    """
    whole = reader.load_scenario(name, FOLDER, overrides)
    section = whole.section()
    description = section.need('description', yaml.YamlValue.text)
    seed = section.take('seed', yaml.YamlValue.integer, 1)
    days = section.need('days', reader.read_days)
    cycle_s = section.take('cycle_s', yaml.YamlValue.positive, 60.0)
    half_life_h = section.take(
        'half_life_hours', yaml.YamlValue.positive, 168.0
    )
    hosts = section.need('hosts', reader.read_hosts)
    cloud = section.need(
        'cloud', lambda value: _read_cloud(value, hosts, days, seed)
    )
    jobs = section.need(
        'batch', lambda value: _read_jobs(value, hosts, days, seed)
    )
    border = section.take('border', lambda value: value, None)
    section.finish()
    world = world_module.World(
        dataclasses.replace(
            cloud,
            name=whole.path.stem,
            description=description,
            cycle_s=cycle_s,
            half_life_s=half_life_h * workload.HOUR_S,
        ),
        jobs,
        len(hosts) // 2,
        demand.BorderRules(),
    )
    _check_pledges(whole, world)
    return _with_border_settings(border, world) if border else world


def _read_cloud(
    value: yaml.YamlValue, hosts: cluster.Amounts, days: float, seed: int
) -> workload.QueuedCloud:
    section = value.section()
    wait_h = section.take('longest_wait_hours', yaml.YamlValue.positive, None)
    patience_h = section.take(
        'backfill_patience_hours', yaml.YamlValue.number, _PATIENCE_H
    )
    notice_s = section.take('notice_s', yaml.YamlValue.number, 600.0)
    owners, stream = reader.read_owners_and_requests(
        section, hosts, days, seed
    )
    return workload.QueuedCloud(
        name='',
        description='',
        seed=seed,
        duration_s=days * workload.DAY_S,
        cycle_s=60.0,
        half_life_s=1.0,
        longest_wait_s=None if wait_h is None else wait_h * workload.HOUR_S,
        patience_s=patience_h * workload.HOUR_S,
        estimates_s=None,
        hosts=hosts,
        owners=owners,
        stream=stream,
        notice_s=notice_s,
    )


def _read_jobs(
    value: yaml.YamlValue, hosts: cluster.Amounts, days: float, seed: int
) -> world_module.Jobs:
    section = value.section()
    most = section.take('largest_limit_factor', _read_limit_factor, 3.0)
    owners, stream = reader.read_owners_and_requests(
        section, hosts, days, seed + _JOBS
    )
    # Users ask for more time than they need, some for much more.
    drawn = chance.uniform(seed, _LIMITS, np.arange(len(stream)))
    limit_s = stream.lifetime_s * (1.0 + (most - 1.0) * drawn)
    if stream.limit_s is not None:
        is_told = np.isfinite(stream.limit_s)
        limit_s = np.where(is_told, stream.limit_s, limit_s)
    return world_module.Jobs(owners, stream, limit_s)


def _read_limit_factor(value: yaml.YamlValue) -> float:
    return value.number(1.0)


def _check_pledges(whole: yaml.YamlValue, world: world_module.World) -> None:
    """Refuse a group that has different shares on the two sides."""
    known: dict[str, float] = {}
    for owners in (world.jobs.owners, world.cloud.owners):
        for name, share in zip(owners.projects, owners.shares, strict=True):
            if known.setdefault(name, share) != share:
                raise whole.wrong(
                    f'one share for {name} on both sides, got'
                    f' {known[name]:g} and {share:g}'
                )


def _with_border_settings(
    value: yaml.YamlValue, world: world_module.World
) -> world_module.World:
    section, usual = value.section(), world.rules
    hosts = len(world.cloud.hosts)
    rules = dataclasses.replace(
        usual,
        patience_s=section.take('patience_s', yaml.YamlValue.number, 300.0),
        spare_cores=section.take('spare_cores', yaml.YamlValue.number, 0.0),
        stay_s=section.take('stay_s', yaml.YamlValue.number, usual.stay_s),
        most_moving=section.take('most_moving', yaml.YamlValue.integer, 2),
        most_per_day=section.take('most_per_day', yaml.YamlValue.integer, 3),
        ttl_s=section.take(
            'time_to_live_s', yaml.YamlValue.positive, usual.ttl_s
        ),
        contended=section.take(
            'contended', lambda each: each.integer(0, hosts), None
        ),
    )
    office = world_module.OperatorSettings(
        section.take('operator_hours', _read_hours, world.operator.hours),
        section.take(
            'operator_time_to_live_s',
            yaml.YamlValue.positive,
            world.operator.ttl_s,
        ),
    )
    begins = section.take(
        'cloud_hosts',
        lambda each: each.integer(0, hosts),
        world.cloud_hosts_at_start,
    )
    boot_s = section.take('boot_s', yaml.YamlValue.number, world.boot_s)
    migrate_s = section.take(
        'migrate_s', yaml.YamlValue.number, world.migrate_s
    )
    adjusts = section.take('adjusts_shares', yaml.YamlValue.yes_or_no, True)
    section.finish()
    return dataclasses.replace(
        world,
        cloud_hosts_at_start=begins,
        rules=rules,
        operator=office,
        boot_s=boot_s,
        migrate_s=migrate_s,
        adjust_s=world.adjust_s if adjusts else None,
    )


def _read_hours(value: yaml.YamlValue) -> tuple[float, ...]:
    found = tuple(each.number() for each in value.items())
    if not found or sorted(found) != [*found] or found[-1] >= 24:
        raise value.wrong('hours of a day, ascending, below 24')
    return found
