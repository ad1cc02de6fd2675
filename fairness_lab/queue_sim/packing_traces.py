# SPDX-License-Identifier: Apache-2.0

"""The VMs of a trace on few hosts, by where they start and what moves them."""

from collections.abc import Iterator
import pathlib
from typing import Any

import numpy as np

from fairness_lab.queue_sim import packing
from fairness_lab.queue_sim import traces
from fairness_lab.queue_sim import workload

Row = dict[str, Any]

EVERY = 10
"""Starts and ends between two plans."""

_RULES = ('fullest', 'best_fit', 'random', 'cosine', 'dot_product', 'emptiest')
STRATEGIES = {
    **{rule: packing.Strategy(rule) for rule in _RULES},
    'fullest, moved': packing.Strategy('fullest', EVERY),
    'cosine, moved': packing.Strategy('cosine', EVERY),
    'packed anew': packing.Strategy('fullest', EVERY, has_repack=True),
}
"""Where VMs start, then what moves them besides."""

_WHOLE = workload.Size(packing.HOST, packing.HOST)
_NO_MIX = packing.Mix(0, 0, 0.0, packing.Sizes.FLOATS)


def table(path: pathlib.Path, hosts: int, seed: int) -> list[Row]:
    """Hosts in use on average over all starts and ends.

    :param path: of the trace; its VMs need parts of a host.
    :param hosts: that there are.
    :param seed: of what is drawn, >= 0.
    :raises BadTrace: if it cannot be read.
    """
    _, stream = traces.read(traces.Trace(path, {}, 4.0), _WHOLE)
    return [
        {'strategy': name, **_simulate_strategy(stream, strategy, hosts, seed)}
        for name, strategy in STRATEGIES.items()
    ]


def _simulate_strategy(
    stream: workload.Stream,
    strategy: packing.Strategy,
    hosts: int,
    seed: int,
) -> Row:
    run = packing.Packing(_NO_MIX, strategy, hosts, seed)
    bounds = []
    for number, (n, is_start) in enumerate(_events(stream), 1):
        uuid = f'{n:08}'
        if is_start:
            run.start(uuid, stream.sizes[stream.size[n]].demand)
        else:
            run.stop(uuid)
        if strategy.every and number % strategy.every == 0:
            run.plan()
        run.outcome.busy.append(run.busy)
        bounds.append(run.bound)
    return {
        'hosts': round(run.outcome.mean_busy, 2),
        'most': max(run.outcome.busy),
        'bound': round(float(np.mean(bounds)), 2),
        'refused': run.outcome.refused,
        'moves': run.outcome.moves,
    }


def _events(stream: workload.Stream) -> Iterator[tuple[int, bool]]:
    """Numbers of VMs, and whether they start, in their order."""
    count = len(stream)
    at = np.concatenate([stream.asked_s, stream.asked_s + stream.lifetime_s])
    is_start = np.repeat([True, False], count)
    number = np.tile(np.arange(count), 2)
    # Who ends makes room for who starts at the same moment.
    for k in np.lexsort((number, is_start, at)):
        yield int(number[k]), bool(is_start[k])
