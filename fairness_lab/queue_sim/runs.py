# SPDX-License-Identifier: Apache-2.0

"""Runs of the queue: a cloud, an order, and what is written of them."""

import math
import pathlib
from typing import Any

import numpy as np

from fairness_lab.measures import files
from fairness_lab.measures import running
from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import judgement
from fairness_lab.queue_sim import order_texts
from fairness_lab.queue_sim import workload
from nova_fairness import version

VERSION = 1
"""Of ``result.json``: changes when a reader of the old would be misled."""

VICTIMS = 'least'
"""Name of those who make room if nothing else is said."""

Json = dict[str, Any]

_LOOKS_PER_HALF_LIFE = 48
_FEWEST_LOOKS = 20
_MOST_LOOKS = 2000


def run(
    cloud: workload.QueuedCloud,
    order: str,
    directory: pathlib.Path,
    meter: running.ProgressMeter | None = None,
    victims: str = VICTIMS,
) -> Json:
    """Run a cloud under an order and write the results.

    :param order: name of the plugin, and parameters; see
        :mod:`.order_texts`.
    :param directory: that exists.
    :param victims: the same of the plugin that chooses victims.
    :returns: what ``result.json`` holds.
    :raises UnknownPlugin: if there is no such order, or are no such victims.
    :raises UnknownParameter: if one has no such parameter.
    :raises PluginMisbehaved: if one of the two fails.
    """
    judged = _judged(cloud, order, meter, victims)
    for name, columns in judged.tables.items():
        table = files.CsvTable(directory / name)
        table.add(columns)
        table.close()
    result = {**_head(cloud, order, victims), **judged.summary}
    files.write_json(directory / files.RESULT, result)
    return result


def numbers(
    cloud: workload.QueuedCloud,
    order: str,
    meter: running.ProgressMeter | None = None,
    victims: str = VICTIMS,
) -> Json:
    """Run a cloud as :func:`run` does, and write nothing.

    :returns: what ``result.json`` would hold.
    """
    judged = _judged(cloud, order, meter, victims)
    return {**_head(cloud, order, victims), **judged.summary}


def _judged(
    cloud: workload.QueuedCloud,
    order: str,
    meter: running.ProgressMeter | None,
    victims: str,
) -> judgement.QueueJudgement:
    simulation = engine.Simulation(
        cloud,
        order_texts.load_order(order),
        order_texts.load_victims(victims),
    )
    judge = judgement.QueueJudge(cloud)
    every_s = _between_looks(cloud)
    if meter is not None:
        looks = math.ceil(cloud.duration_s / every_s)
        named = f'{cloud.name}, {order}'
        if victims != VICTIMS:
            named += f', {victims}'
        meter.begin(named, looks)
    try:
        for n, moment in enumerate(simulation.moments(every_s), 1):
            judge.see(moment)
            if meter is not None:
                meter.tick(n)
    finally:
        if meter is not None:
            meter.end()
    return judge.result(simulation)


def _between_looks(cloud: workload.QueuedCloud) -> float:
    """Seconds from one look at the cloud to the next."""
    shortest_s = cloud.duration_s / _MOST_LOOKS
    every_s = max(cloud.half_life_s / _LOOKS_PER_HALF_LIFE, shortest_s)
    return min(every_s, cloud.duration_s / _FEWEST_LOOKS)


def _head(cloud: workload.QueuedCloud, order: str, victims: str) -> Json:
    capacity = dict(
        zip(workload.CLASSES, cloud.capacity.tolist(), strict=True)
    )
    return {
        'version': VERSION,
        'scenario': cloud.name,
        'description': cloud.description,
        'package_version': version.release(),
        'order': order,
        'victims': victims,
        'seed': cloud.seed,
        'duration_s': cloud.duration_s,
        'cycle_s': cloud.cycle_s,
        'half_life_s': cloud.half_life_s,
        'longest_wait_s': cloud.longest_wait_s,
        'patience_s': cloud.patience_s,
        'notice_s': cloud.notice_s,
        'kept_free': cloud.marks.upper,
        'freed': cloud.marks.lower,
        'saves': cloud.saves,
        'hosts': len(cloud.hosts),
        'capacity': capacity,
        'projects': len(cloud.owners.projects),
        'users': len(cloud.owners.users),
        'sizes': len(np.unique(cloud.stream.size)),
    }
