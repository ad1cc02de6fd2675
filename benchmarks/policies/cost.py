# SPDX-License-Identifier: Apache-2.0

"""Cost for a node of working out the max-min fair division of a cloud."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import math
import pathlib
import statistics
import time
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.policies import runs
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.measure import demand_buckets
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import greediness
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

SIZES = (10, 100, 1000, 10_000, 50_000)
"""Nodes."""

EACH = 20
"""Users of every node."""

DEGREE = 4
"""Nodes of every user."""

VMS = 2
"""VMs of a user on a node, of one vCPU each."""

INTERVAL_S = 10.0
"""Of a round."""

CPUS: Mapping[str, Sequence[int]] = {'alike': (4,), 'mixed': (1, 2, 4, 8)}
"""Of nodes, drawn with equal chance, by what such clouds are called."""

MEAN = 0.25
"""CPUs that a VM wants on average. 20 users' 40 VMs want 10 CPUs of a node."""

SPREAD = 1.0
"""Of what VMs want in mixed clouds: standard deviation of the logarithm.
Elsewhere they want from nothing to twice the mean."""

MEMORY_BYTES = 1e9
"""Of every node."""

METRICS: Mapping[type[metric_base.Metric], int] = {
    dominant_share.DominantShareMetric: max(SIZES),
    greediness.GreedinessMetric: 100,
}
"""Up to how many nodes they are asked: one that looks at users' sums alone,
and one that looks at cells."""

RATIO = 20.0
"""Largest by smallest weight."""

TIMES = 5
"""Repetitions; the middle one counts. Only one from ..."""

FEW = 10_000
"""... so many nodes on."""

MOST_MIXED = 10_000
"""Nodes of mixed clouds."""

WRITTEN = {
    'nodes': '{}',
    'pairs': '{}',
    'cloud': '{}',
    'metric': '{}',
    'ms': '{:.0f}',
    'rounds': '{}',
    'ms of a round': '{:.0f}',
    'memory MB': '{:.1f}',
    'sharpness': '{:.3f}',
}
"""Columns of the table, and their formats."""


def cost(out: pathlib.Path, sizes: Iterable[int] = SIZES) -> None:
    """Time foresight on random graphs."""
    results = [
        _timed(nodes, cloud, metric())
        for nodes in sizes
        for cloud in CPUS
        for metric, most in METRICS.items()
        if nodes <= (most if cloud == 'alike' else min(most, MOST_MIXED))
    ]
    runs.write(out / 'cost.json', results)
    rows = [
        [form.format(item[key]) for key, form in WRITTEN.items()]
        for item in results
    ]
    runs.write_csv(out / 'foresight-cost.csv', [list(WRITTEN), *rows])


def drawn(
    nodes: int, cloud: str, metric: metric_base.Metric
) -> foresight_model.CpuKnowledge:
    """Draw a cloud in which every user is on four nodes.

    :param cloud: one of :data:`CPUS`.
    """
    rng = np.random.default_rng(nodes)
    node, user = _places(rng, nodes)
    users = nodes * EACH // DEGREE
    whole = np.zeros((nodes, len(resources.RESOURCES)))
    whole[:, decide_foresight.CPU_TIME] = INTERVAL_S * rng.choice(
        CPUS[cloud], nodes
    )
    whole[:, resources.RESOURCES.index('memory')] = MEMORY_BYTES
    of_cell = whole[node] / EACH
    asked = _asked(rng, cloud, len(node))
    wanted = of_cell.copy()
    wanted[:, decide_foresight.CPU_TIME] = asked.sum(axis=1) * INTERVAL_S
    used = np.minimum(wanted, of_cell)
    quota = np.tile(whole.sum(axis=0) / users, (users, 1))
    told = measure_foresight.Cells(
        node, user, endowment=of_cell, used=used, wanted=wanted
    )
    weighing = measure_foresight.HeavinessProbe(
        metric, told, quota, whole.sum(axis=0)
    )
    return foresight_model.CpuKnowledge(
        node=node,
        user=user,
        wanted=wanted,
        used=used,
        supply=whole,
        one_cpu=np.full(nodes, INTERVAL_S),
        demand=_demand(asked),
        weigh=weighing,
        weigh_users=weighing.of_users,
        metric=type(metric).__name__,
        quota=quota,
    )


def _asked(
    rng: np.random.Generator, cloud: str, count: int
) -> npt.NDArray[np.float64]:
    """Draw how many CPUs the VMs of each cell want, (count, VMS)."""
    shape = (count, VMS)
    if cloud == 'alike':
        return rng.uniform(0.0, 2 * MEAN, shape)
    median = MEAN * np.exp(-(SPREAD**2) / 2)
    return np.minimum(median * np.exp(rng.normal(0.0, SPREAD, shape)), 1.0)


def _demand(asked: npt.NDArray[np.float64]) -> foresight_model.CpuDemand:
    """Say of each VM how much it wants, as reports do."""
    count = len(asked)
    cell = np.repeat(np.arange(count), VMS)
    told = demand_buckets.sum_by_grade(
        cell, np.ones(cell.size), asked.ravel(), count
    )
    one_cpu = np.full(count, INTERVAL_S)
    return measure_foresight.demand(
        asked.sum(axis=1) * INTERVAL_S, one_cpu, told
    )


def _places(
    rng: np.random.Generator, nodes: int
) -> tuple[usage_model.Indices, usage_model.Indices]:
    """Node and user of each cell, sorted by both.

    Users are on neighbours in circles. Each circle is drawn again, so that
    every node has equally many users, and no user is on a node twice.
    """
    circles = [rng.permutation(nodes) for _ in range(EACH // DEGREE)]
    node = np.concatenate(
        [np.roll(circle, -k) for circle in circles for k in range(DEGREE)]
    )
    number = np.repeat(np.arange(len(circles)), DEGREE * nodes)
    user = number * nodes + np.tile(np.arange(nodes), EACH)
    order = np.lexsort((user, node))
    return node[order], user[order]


def _timed(
    nodes: int, cloud: str, metric: metric_base.Metric
) -> Mapping[str, Any]:
    """Take CPU time and memory of foresight, at once and round by round."""
    given = drawn(nodes, cloud, metric)
    found = [_spent(given) for _ in range(1 if nodes >= FEW else TIMES)]
    whole_s = statistics.median(spent_s for spent_s, _ in found)
    rounds = _rounds(given)
    row = {
        'nodes': nodes,
        'pairs': len(given.node),
        'cloud': cloud,
        'metric': given.metric,
        'ms': 1000 * whole_s,
        'rounds': len(rounds),
        'ms of a round': 1000 * statistics.median(rounds),
        'ms of each round': [1000 * spent_s for spent_s in rounds],
        'memory MB': _peak_bytes(given) / 1e6,
        'sharpness': max(end.sharpness for _, end in found),
    }
    print(row, flush=True)
    return row


def _rounds(given: foresight_model.CpuKnowledge) -> list[float]:
    """Foresee as an agent does, in as many rounds as it takes, seconds."""
    spent: list[float] = []
    course = decide_foresight.AgentSearch()

    def make(
        known: foresight_model.CpuKnowledge,
        before: decide_foresight.ForesightSearch | None,
        steps: int,
    ) -> tuple[decide_foresight.ForesightSearch, float]:
        began_s = time.process_time()
        found = decide_foresight.search_division(known, RATIO, before, steps)
        return found, time.process_time() - began_s

    while course.work is None or not course.work.is_over:
        began_s = time.process_time()
        course = course.continue_for_round(given, make, math.inf)
        spent.append(time.process_time() - began_s)
    return spent


def _peak_bytes(given: foresight_model.CpuKnowledge) -> int:
    """Say how much memory foresight takes beside what it is given."""
    tracemalloc.start()
    decide_foresight.search_division(given, RATIO)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _spent(
    given: foresight_model.CpuKnowledge,
) -> tuple[float, foresight_model.CpuTarget]:
    """Foresee at once: CPU time, seconds, and what was found."""
    began_s = time.process_time()
    end = decide_foresight.search_division(given, RATIO).end
    return time.process_time() - began_s, end
