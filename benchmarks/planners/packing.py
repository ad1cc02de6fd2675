# SPDX-License-Identifier: Apache-2.0

"""Cost of migration plans, in seconds of CPU, on clouds of every size.

Twenty servers of nine flavors lie on each host on average. Hosts are about
half full with 96 VCPUs, and nearly full with 52::

    python -m benchmarks.planners.packing --out FILE
"""

from collections.abc import Callable
import random
import time
from typing import Any

import numpy as np

from benchmarks.queue import recorded
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules

CLASSES = ('MEMORY_MB', 'VCPU')
SIZES = (125, 250, 500, 1000)
ON_EACH = 20
HALF, FULL = 96, 52
FLAVORS = tuple((2048 * n * k, n) for n in (1, 2, 4) for k in (1, 2, 4))


def demand(memory: int, vcpus: int) -> request.Demand:
    """Resources that a server needs."""
    return request.Demand((('MEMORY_MB', memory), ('VCPU', vcpus)))


def cloud(hosts: int, vcpus: int) -> cluster.ClusterSnapshot:
    """Hosts with servers that may be moved."""
    chance = random.Random(hosts)
    have = np.array([6144 * vcpus, vcpus])
    used = np.zeros((hosts, 2), np.int64)
    running: list[cluster.Running] = []
    while len(running) < hosts * ON_EACH:
        flavor = chance.choice(FLAVORS)
        row = chance.randrange(hosts)
        if (used[row] + flavor > have).any():
            continue
        used[row] += flavor
        needs = demand(*flavor)
        running.append(
            cluster.Running(
                f'host-{row:05}',
                'p',
                needs.amounts,
                0.0,
                uuid=f's{len(running):06}',
                demand=needs,
            )
        )
    capacity = np.tile(have, (hosts, 1))
    return cluster.ClusterSnapshot(
        CLASSES,
        tuple(
            cluster.Provider(f'uuid-{n:05}', f'host-{n:05}')
            for n in range(hosts)
        ),
        cluster.Inventory(capacity, used, capacity, used * 0 + 1),
        running=tuple(running),
    )


def plan_rescue(snapshot: cluster.ClusterSnapshot) -> rules.ConsolidationPlan:
    """Make room for a request that needs a whole host."""
    needs = demand(*map(int, snapshot.inventory.capacity[0]))
    asked = request.Request('r', 'p', 'u', ('r',), needs, 0.0)
    found = planner.rescue(snapshot, asked)
    if found is None:
        raise SystemExit('no room can be made: draw another cloud')
    return found


GOALS: dict[
    str,
    tuple[Callable[[cluster.ClusterSnapshot], rules.ConsolidationPlan], int],
] = {
    'consolidate': (planner.consolidate, HALF),
    'consolidate, nearly full': (planner.consolidate, FULL),
    'repack': (repack.repack, HALF),
    'repack, nearly full': (repack.repack, FULL),
    'balance': (balance.balance, HALF),
    'rescue, nearly full': (plan_rescue, FULL),
}
"""Planner of each goal, and VCPUs of hosts."""


def measure_plans(name: str) -> dict[str, Any]:
    """Cost of plans for a goal."""
    plan_for, vcpus = GOALS[name]
    rows = []
    for hosts in SIZES:
        snapshot = cloud(hosts, vcpus)
        begun_s = time.process_time()
        plan = plan_for(snapshot)
        rows.append(
            {
                'hosts': hosts,
                'servers': len(snapshot.running),
                'cpu_s': time.process_time() - begun_s,
                'moves': len(plan.moves),
                'busy': plan.busy,
            }
        )
    logs = np.log([[each['hosts'], each['cpu_s']] for each in rows]).T
    return {'plans': rows, 'exponent': float(np.polyfit(*logs, 1)[0])}


def main() -> None:
    """Measure and record."""
    out = recorded.parser(__doc__ or '').parse_args().out
    recorded.write(out, {name: measure_plans(name) for name in GOALS})


if __name__ == '__main__':
    main()
