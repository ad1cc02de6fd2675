# SPDX-License-Identifier: Apache-2.0

"""Run both sides with every mover of the border, and write results."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np

from fairness_lab.border_sim import border_policies
from fairness_lab.border_sim import engine
from fairness_lab.border_sim import judgement
from fairness_lab.border_sim import world as world_module
from fairness_lab.measures import files
from fairness_lab.measures import running
from fairness_lab.queue_sim import workload
from nova_fairness import plugins
from nova_fairness import version

Json = dict[str, Any]

VERSION = 1
"""Of ``border.json``: changes when a reader of the old would be misled."""

MOVERS = ('demand', 'operator', 'fixed')
"""Movers by name; ``fixed`` is every border that never moves."""

ORDER = 'fair_tree'
"""Of the queue."""


def compare(
    world: world_module.World,
    names: Sequence[str],
    directory: pathlib.Path,
    meter: running.ProgressMeter | None = None,
) -> Json:
    """Run all movers on the same jobs and requests.

    :param names: of :data:`MOVERS`.
    :param directory: that exists; gets ``border.json`` and tables.
    :returns: what ``border.json`` holds.
    """
    runs = list(_worlds_and_movers(world, names))
    looks = math.ceil(world.cloud.duration_s / workload.DAY_S)
    if meter is not None:
        meter.begin(world.cloud.name, looks * len(runs))
    found = []
    try:
        for n, (name, one, mover) in enumerate(runs):
            judged = _run(one, mover, meter, n * looks)
            for table, columns in judged.tables.items():
                file = files.CsvTable(directory / f'{table}-{name}')
                file.add(columns)
                file.close()
            found.append(
                {
                    'name': name,
                    **_hosts_of_fixed_border(one, mover),
                    **judged.summary,
                }
            )
    finally:
        if meter is not None:
            meter.end()
    result = {
        **_result_head(world),
        'best_fixed': _best_fixed_border(found),
        'runs': found,
    }
    files.write_json(directory / 'border.json', result)
    return result


def _worlds_and_movers(
    world: world_module.World, names: Sequence[str]
) -> Iterator[tuple[str, world_module.World, border_policies.Mover | None]]:
    if 'demand' in names:
        yield 'demand', world, border_policies.DemandMover(world.rules)
    if 'operator' in names:
        yield (
            'operator',
            world,
            border_policies.Operator(
                world.operator, world.cloud_hosts_at_start
            ),
        )
    if 'fixed' in names:
        for hosts in range(len(world.cloud.hosts) + 1):
            fixed = dataclasses.replace(world, cloud_hosts_at_start=hosts)
            yield f'fixed-{hosts:03d}', fixed, None


def _run(
    world: world_module.World,
    mover: border_policies.Mover | None,
    meter: running.ProgressMeter | None,
    before: int,
) -> judgement.BorderJudgement:
    border = engine.BorderRun(world, mover, plugins.load_order(ORDER))
    judge = judgement.BorderJudge(world)
    for moment in border.moments(workload.HOUR_S):
        judge.see(moment, border.pledges)
        if meter is not None and not moment.at_s % workload.DAY_S:
            meter.tick(before + int(moment.at_s // workload.DAY_S))
    return judge.result(border)


def _hosts_of_fixed_border(
    world: world_module.World, mover: border_policies.Mover | None
) -> Json:
    return {'cloud_hosts': None if mover else world.cloud_hosts_at_start}


def _best_fixed_border(found: Sequence[Json]) -> str | None:
    """Name of the fixed border with most work; the first of equals."""
    fixed = [each for each in found if each['cloud_hosts'] is not None]
    if not fixed:
        return None
    best = max(fixed, key=lambda each: float(each['work']['total']))
    return str(best['name'])


def _result_head(world: world_module.World) -> Json:
    cloud = world.cloud
    return {
        'version': VERSION,
        'scenario': cloud.name,
        'description': cloud.description,
        'package_version': version.release(),
        'seed': cloud.seed,
        'duration_s': cloud.duration_s,
        'cycle_s': cloud.cycle_s,
        'half_life_s': cloud.half_life_s,
        'hosts': len(cloud.hosts),
        'cores': world.cores,
        'jobs': len(world.jobs.stream),
        'requests': len(cloud.stream),
        'wanted': {
            'batch': _wanted_core_hours(world.jobs.stream),
            'cloud': _wanted_core_hours(cloud.stream),
        },
        'boot_s': world.boot_s,
        'migrate_s': world.migrate_s,
        'shares_of_both_sides': world.adjust_s is not None,
    }


def _wanted_core_hours(stream: workload.Stream) -> float:
    """Core-hours that all requests of a stream want."""
    cores = np.array([size.vcpus * size.servers for size in stream.sizes])
    hours = cores[stream.size] @ stream.lifetime_s / workload.HOUR_S
    return round(float(hours), 3)
