# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a look ahead costs a node."""

from collections.abc import Mapping
import pathlib
import statistics
import time
from typing import Any

import numpy as np
import policies_runs as runs

from nova_fairness.decide import look_ahead
from nova_fairness.measure import cells
from nova_fairness.measure import grades
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import greediness
from nova_fairness.model import outlook as outlook_module
from nova_fairness.model import resources

SIZES = (10, 100, 250, 1000)
"""Nodes."""

EACH = 20
"""Users of every node."""

DEGREE = 4
"""Nodes of every user."""

CPUS, INTERVAL_S = 4, 10.0
"""Of every node, and of a round."""

MOST_S = 10.0
"""CPU time that a user wants of a node, at most."""

MEMORY_BYTES = 1e9
"""Of every node."""

METRICS = (dominant_share.DominantShareMetric, greediness.GreedinessMetric)

RATIO = 20.0
"""Largest by smallest weight."""

TIMES = 5
"""Looks ahead, of which the middle one counts."""


def cost(out: pathlib.Path) -> None:
    """Time looks ahead on random graphs."""
    results = []
    for nodes in SIZES:
        for metric in METRICS:
            results.append(_timed(drawn(nodes, metric())))
            print(results[-1], flush=True)
    runs.write(out / 'cost.json', results)
    rows = [
        [*list(item.values())[:-1], f'{item["ms"]:.0f}'] for item in results
    ]
    runs.write_csv(out / 'look-ahead-cost.csv', [list(results[0]), *rows])


def drawn(nodes: int, metric: metric_base.Metric) -> outlook_module.Outlook:
    """Draw a cloud in which every user is on four nodes."""
    rng = np.random.default_rng(nodes)
    node, user = _places(rng, nodes)
    users = nodes * EACH // DEGREE
    supply = resources.RESOURCES.vector(
        cpu_time=CPUS * INTERVAL_S, memory=MEMORY_BYTES
    )
    of_vm = np.tile(supply / EACH, (len(node), 1))
    wanted = of_vm.copy()
    wanted[:, look_ahead.CPU_TIME] = rng.uniform(0.1, MOST_S, len(node))
    # Who wants less than his part has all of it.
    used = np.minimum(wanted, of_vm)
    whole = np.tile(supply, (nodes, 1))
    quota = np.tile(whole.sum(axis=0) / users, (users, 1))
    told = cells.Cells(node, user, endowment=of_vm, used=used, wanted=wanted)
    weighing = cells.Weighing(metric, told, quota, whole.sum(axis=0))
    one_cpu = np.full(nodes, INTERVAL_S)
    return outlook_module.Outlook(
        node=node,
        user=user,
        wanted=wanted,
        used=used,
        supply=whole,
        one_cpu=one_cpu,
        demand=_demand(wanted[:, look_ahead.CPU_TIME], one_cpu[node]),
        weigh=weighing,
        weigh_users=weighing.of_users,
        metric=type(metric).__name__,
        quota=quota,
    )


def _demand(wanted: np.ndarray, one_cpu: np.ndarray) -> outlook_module.Demand:
    """Let each user have one VM of one vCPU on a node."""
    each = np.arange(len(wanted))
    graded = grades.graded(
        each, np.ones(len(wanted)), wanted / one_cpu, len(wanted)
    )
    return cells.demand(wanted, one_cpu, graded)


def _places(
    rng: np.random.Generator, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Give node and user of each cell, sorted by both.

    Users are on neighbours in circles that are drawn anew, so that every node
    has equally many users, and no user is on a node twice.
    """
    circles = [rng.permutation(nodes) for _ in range(EACH // DEGREE)]
    node = np.concatenate(
        [np.roll(circle, -k) for circle in circles for k in range(DEGREE)]
    )
    number = np.repeat(np.arange(len(circles)), DEGREE * nodes)
    user = number * nodes + np.tile(np.arange(nodes), EACH)
    order = np.lexsort((user, node))
    return node[order], user[order]


def _timed(given: outlook_module.Outlook) -> Mapping[str, Any]:
    """Take the CPU time of looks ahead that begin with nothing known."""
    found = []
    for _ in range(TIMES):
        began_s = time.process_time()
        look_ahead.end(given, RATIO)
        found.append(time.process_time() - began_s)
    return {
        'nodes': len(given.supply),
        'users of them': len(given.node),
        'metric': given.metric,
        'ms': 1000 * statistics.median(found),
    }
