# SPDX-License-Identifier: Apache-2.0

"""Cost of a plan that helps owners, in seconds of CPU.

Hosts have twenty servers of 200 owners each on average, put there by chance,
and CPUs for most of what they want: some hosts lack and others have room::

    python -m benchmarks.planners.tenants --out FILE
"""

import math
import random
import time

import numpy as np

from benchmarks.queue import recorded
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner
from nova_fairness.shares import filling

CLASSES = ('MEMORY_MB', 'VCPU')
SIZES = (125, 250, 500, 1000)
ON_EACH = 20
CPUS = 32.0


def cloud(hosts: int) -> tenants.Tenants:
    """Servers that want up to their VCPUs, or nothing."""
    chance = random.Random(hosts)
    have = np.array([512 * 1024, 32 * 8])
    used = np.zeros((hosts, 2), np.int64)
    running, places, wanted, owners = [], [], [], []
    for n in range(hosts * ON_EACH):
        vcpus = 2 ** chance.randrange(4)
        row = chance.randrange(hosts)
        used[row] += [vcpus * 2048, vcpus]
        needs = request.Demand((('MEMORY_MB', vcpus * 2048), ('VCPU', vcpus)))
        running.append(
            cluster.Running(
                f'host-{row:05}',
                'p',
                needs.amounts,
                0.0,
                uuid=f's{n:06}',
                demand=needs,
            )
        )
        places.append(row)
        wanted.append(vcpus * chance.choice([0.0, 0.1, 0.2, 0.5, 1.0]))
        owners.append(f'u{chance.randrange(hosts * ON_EACH // 100):05}')
    got, _ = filling.fill(
        np.full(hosts, CPUS),
        np.array(places),
        np.array(wanted),
        np.ones(len(wanted)),
    )
    wants = {
        each.uuid: tenants.ServerWant(owner, want, float(one))
        for each, owner, want, one in zip(
            running, owners, wanted, got, strict=True
        )
    }
    names = [f'host-{n:05}' for n in range(hosts)]
    capacity = np.tile(have, (hosts, 1))
    snapshot = cluster.ClusterSnapshot(
        CLASSES,
        tuple(cluster.Provider(f'uuid-{each}', each) for each in names),
        cluster.Inventory(capacity, used, capacity, used * 0 + 1),
        running=tuple(running),
    )
    return tenants.Tenants(snapshot, wants, dict.fromkeys(names, CPUS))


def measure_plan(hosts: int, rules: planner.TenantRules) -> dict[str, float]:
    """Cost and result of a plan."""
    given = cloud(hosts)
    begun_s = time.process_time()
    plan = planner.plan(given, 0.0, rules)
    return {
        'hosts': hosts,
        'servers': hosts * ON_EACH,
        'cpu_s': round(time.process_time() - begun_s, 3),
        'moves': len(plan.plan.moves),
        'helped': len(plan.helped),
        'worst_before': round(plan.worst[0], 4),
        'worst_after': round(plan.worst[1], 4),
        'is_whole': plan.is_whole,
    }


def exponent(rows: list[dict[str, float]]) -> float:
    """Power of the size with which the cost grows."""
    logs = [(math.log(e['hosts']), math.log(e['cpu_s'])) for e in rows]
    return round(float(np.polyfit(*zip(*logs, strict=True), 1)[0]), 2)


RULES = {
    'usual': planner.USUAL,
    'any number of moves': planner.TenantRules(most=None),
}


def main() -> None:
    """Measure and record."""
    out = recorded.parser(__doc__ or '').parse_args().out
    found = {}
    for name, rules in RULES.items():
        rows = [measure_plan(hosts, rules) for hosts in SIZES]
        found[name] = {'exponent': exponent(rows), 'plans': rows}
    recorded.write(out, found)


if __name__ == '__main__':
    main()
