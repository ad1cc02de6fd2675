# SPDX-License-Identifier: Apache-2.0

"""Cost of choosing servers that make room, and the distance from the best.

Hosts are full of preemptible servers, ten on each, of 200 owners; a normal
request for which some of them must leave comes, and then fifty at once. The
gap is that of choosing one after the other to the integer program, on 200
small cases::

    python -m benchmarks.planners.preemption --out FILE
"""

import math
import random
import time

import numpy as np

from benchmarks.queue import recorded
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import ilp
from nova_fairness.planners.preemption import least_cost
from nova_fairness.planners.preemption import planner
from nova_fairness.testing import victims_contract

CLASSES = ('MEMORY_MB', 'VCPU')
NOW = 1e6
ON_EACH = 10
CASES = 200


def cloud(hosts: int, waiting: int) -> cluster.ClusterSnapshot:
    """Hosts full of preemptible servers, and normal requests that wait."""
    chance = random.Random(hosts)
    running, used = [], np.zeros((hosts, 2), np.int64)
    for n in range(hosts * ON_EACH):
        vcpu = 1 + chance.randrange(8)
        amounts = (('MEMORY_MB', vcpu * 2048), ('VCPU', vcpu))
        used[n // ON_EACH] += [vcpu * 2048, vcpu]
        running.append(
            cluster.Running(
                f'host-{n // ON_EACH:05}',
                f'p{chance.randrange(200)}',
                amounts,
                NOW - 600 - 500_000 * chance.random(),
                f'u{chance.randrange(10)}',
                f's{n:06}',
                band=request.Band.PREEMPTIBLE,
            )
        )
    needs = (('MEMORY_MB', 16 * 2048), ('VCPU', 16))
    return cluster.ClusterSnapshot(
        CLASSES,
        tuple(
            cluster.Provider(f'uuid-{n:05}', f'host-{n:05}')
            for n in range(hosts)
        ),
        cluster.Inventory(used.copy(), used, used.copy(), used * 0 + 1),
        tuple(
            request.Request(
                f'r{n}', f'n{n}', 'u', (f'r{n}',), request.Demand(needs), 0.0
            )
            for n in range(waiting)
        ),
        running=tuple(running),
    )


def decisions() -> list[dict[str, float]]:
    """Cost of plans of every size, in seconds of CPU."""
    found = []
    for waiting in (1, 50):
        for hosts in (125, 250, 500, 1000):
            snapshot = cloud(hosts, waiting)
            costs = []
            for _ in range(3):
                begun_s = time.process_time()
                plan = planner.plan(snapshot, NOW, queue.plan)
                costs.append(time.process_time() - begun_s)
            made = [each for each in plan.actions if each.leaving]
            found.append(
                {
                    'waiting': waiting,
                    'hosts': hosts,
                    'preemptible': hosts * ON_EACH,
                    'cpu_s': min(costs),
                    'served': len(made),
                    'leaving': sum(len(each.leaving) for each in made),
                }
            )
    return found


def exponent(rows: list[dict[str, float]], waiting: int) -> float:
    """Power of the size with which the cost grows."""
    logs = [
        (math.log(row['hosts']), math.log(row['cpu_s']))
        for row in rows
        if row['waiting'] == waiting
    ]
    return float(np.polyfit(*zip(*logs, strict=True), 1)[0])


def gaps() -> dict[str, float]:
    """How much more the choice one by one costs than the best, on each.

    ``by_default`` is the largest of the choice as it is installed, which asks
    the program itself on cases as small as these.
    """
    found, usual = [], []
    for seed in range(CASES):
        needs, field = victims_contract.make_case(seed, needs=2)
        best = ilp.cheapest_choices(needs, field)
        greedy = least_cost.Least(exact=0.0).choose(needs, field)
        if best is None or None in greedy:
            continue
        bound = candidates.price(field, best)
        found.append(candidates.price(field, greedy) / bound - 1)
        chosen = least_cost.Least().choose(needs, field)
        usual.append(candidates.price(field, chosen) / bound - 1)
    gap = np.array(found)
    return {
        'cases': len(gap),
        'mean': float(gap.mean()),
        'p95': float(np.percentile(gap, 95)),
        'largest': float(gap.max()),
        'exact': int((gap < 1e-4).sum()),
        'by_default': max(usual),
    }


def main() -> None:
    """Measure and record."""
    out = recorded.parser(__doc__ or '').parse_args().out
    rows = decisions()
    found = {
        'decisions': rows,
        'exponent': {str(n): exponent(rows, n) for n in (1, 50)},
        'gap': gaps(),
    }
    recorded.write(out, found)


if __name__ == '__main__':
    main()
