# SPDX-License-Identifier: Apache-2.0

"""Cost of a plan of the queue, up to 10,000 requests on 1,000 hosts.

Clouds are nearly full: a few requests can start and most wait. A second kind
has hosts of one size and as many flavors as requests, in the order of
submission and by shares. Each runs without accounts, and with accounts that
have budgets, windows, ceilings and quotas. Twenty servers run on every host;
half of their kinds have a known length. Run alone on the
machine::

    python -m benchmarks.queue.fairqueue --out results/fairqueue.json
"""

import dataclasses
import math
import random
import time
from typing import Any

import numpy as np

from benchmarks.queue import recorded
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import budgets

CLASSES = ('DISK_GB', 'MEMORY_MB', 'VCPU', 'PCPU', 'CUSTOM_GPU')
PROJECTS, FACULTIES = 200, 10
USERS = 10
"""Of each project."""

NOW = 0.0
"""Midnight of a Thursday."""

SIZES = ((1250, 125), (2500, 250), (5000, 500), (10_000, 1000))


def hosts(count: int, chance: random.Random) -> tuple[cluster.Provider, ...]:
    """Hosts in three zones, some with a trait, one in fifty disabled."""
    return tuple(
        cluster.Provider(
            f'uuid-{n:05}',
            f'host-{n:05}',
            f'z{n % 3}',
            frozenset({'T1'} if chance.random() < 0.3 else ()),
            frozenset({f'a{n % 20}'}),
            n % 50 != 7,
        )
        for n in range(count)
    )


def inventory(count: int, chance: random.Random) -> cluster.Inventory:
    """Hosts that are nearly full: 0 to 12 of 128 VCPUs are left."""
    capacity = np.tile(np.int64([4000, 512_000, 128, 0, 0]), (count, 1))
    capacity[::10, 4] = 4
    used = capacity.copy()
    for row in range(count):
        left = chance.randrange(13)
        used[row] -= np.minimum(
            capacity[row], [left * 20, left * 4000, left, 0, left // 4]
        )
    return cluster.Inventory(
        capacity, used, capacity.copy(), np.ones_like(capacity)
    )


def demand(n: int, chance: random.Random, flavors: int) -> request.Demand:
    """One of so many flavors, in a zone or with a trait or without."""
    flavor = n % flavors
    vcpu = 1 + flavor % 16
    amounts = {
        'DISK_GB': 10 + flavor // 16,
        'MEMORY_MB': vcpu * 2048,
        'VCPU': vcpu,
    }
    if flavor % 30 == 0:
        amounts['CUSTOM_GPU'] = 1
    zone = chance.choice(['', '', 'z1'])
    traits = frozenset({'T1'} if chance.random() < 0.2 else ())
    return request.Demand(tuple(sorted(amounts.items())), traits, zone=zone)


def requests(
    count: int, chance: random.Random, flavors: int
) -> tuple[request.Request, ...]:
    """Requests of 2,000 users of 200 projects.

    One in twenty is of several servers or a group.
    """
    made = []
    for n in range(count):
        group = None
        servers = chance.randrange(2, 9) if n % 20 == 0 else 1
        if n % 40 == 0:
            rule = chance.choice(list(request.Rule))
            group = request.Group(f'g{n}', rule)
        made.append(
            request.Request(
                f'r{n:06}',
                f'p{chance.randrange(PROJECTS)}',
                f'u{chance.randrange(USERS)}',
                tuple(f'r{n:06}-{k}' for k in range(servers)),
                demand(n, chance, flavors),
                float(n),
                group=group,
            )
        )
    return tuple(made)


def running(count: int, chance: random.Random) -> list[cluster.Running]:
    """Twenty servers on every host, of 200 projects."""
    made = []
    for n in range(20 * count):
        vcpu = 1 + chance.randrange(16)
        amounts = (('MEMORY_MB', vcpu * 2048), ('VCPU', vcpu))
        made.append(
            cluster.Running(
                f'host-{n // 20:05}',
                f'p{chance.randrange(PROJECTS)}',
                amounts,
                NOW - 86400.0 * chance.random(),
                f'u{n % USERS}',
            )
        )
    return made


def lifetimes(
    chance: random.Random,
) -> dict[cluster.Kind, tuple[float, ...]]:
    """A hundred lifetimes of half of the kinds, up to a week."""
    return {
        (f'p{p}', vcpu, vcpu * 2048): tuple(
            sorted(7 * 86400.0 * chance.random() for _ in range(100))
        )
        for p in range(0, 200, 2)
        for vcpu in range(1, 17)
    }


def accounts(hosts: int) -> tuple[cluster.Account, ...]:
    """Faculties, their projects and users, each with bounds of its kind.

    A faculty may have a fifth of the cloud; one in five may start by day
    alone, which it is not, others at night. A budget of a project is what it
    uses in a month, or less, or more. Users have ceilings. Half of the cloud
    is owned by faculties and projects, who lend half of that at most.
    """
    night = cluster.Window('0 20 * * *', 10 * budgets.HOUR_S)
    day = cluster.Window('0 8 * * mon-fri', 12 * budgets.HOUR_S)
    top = [
        cluster.Account(
            f'f{n}',
            share=1.0 + n,
            windows=(night, day)[n % 5 == 0 :],
            ceiling=(('VCPU', 128 * hosts // 5),),
            nominal=(('VCPU', 128 * hosts // (4 * FACULTIES)),),
            borrowing_limit=(('VCPU', 128 * hosts),),
        )
        for n in range(FACULTIES)
    ]
    projects = [
        cluster.Account(
            f'p{n}',
            f'f{n % FACULTIES}',
            budget_hours=12.0 * hosts * n,
            nominal=(('VCPU', 128 * hosts // (4 * PROJECTS)),),
            lending_limit=(('VCPU', 128 * hosts // (8 * PROJECTS)),),
        )
        for n in range(PROJECTS)
    ]
    users = [
        cluster.Account(
            request.account_of(f'p{n}', f'u{user}'),
            f'p{n}',
            ceiling=(('MEMORY_MB', 2048 * hosts), ('VCPU', hosts // 10)),
        )
        for n in range(PROJECTS)
        for user in range(USERS)
    ]
    return (*top, *projects, *users)


def bounded(
    snapshot: cluster.ClusterSnapshot, now: float
) -> cluster.ClusterSnapshot:
    """The same cloud with accounts and what is left of their budgets."""
    named = dataclasses.replace(
        snapshot, accounts=accounts(len(snapshot.providers))
    )
    left = budgets.open_budgets(named, budgets.BudgetTerms(), {}, now, now)
    return dataclasses.replace(named, budgets=left)


def cloud(waiting: int, count: int, flavors: int) -> cluster.ClusterSnapshot:
    """A cloud with so many requests and hosts."""
    chance = random.Random(waiting)
    have = inventory(count, chance)
    share = have.used.sum(axis=0) // 200
    guaranteed = dict(
        zip(CLASSES, (int(each) for each in share // 2), strict=True)
    )
    return cluster.ClusterSnapshot(
        CLASSES,
        hosts(count, chance),
        have,
        requests(waiting, chance, flavors),
        limits={
            f'p{n}': cluster.Limits(guaranteed, {'VCPU': 100_000})
            for n in range(0, 200, 2)
        },
        used={f'p{n}': share.copy() for n in range(200)},
        running=tuple(running(count, chance)),
        lifetimes=lifetimes(chance),
    )


def measure(
    flavors: int, order: order_module.Order, is_bounded: bool
) -> dict[str, Any]:
    """Plan clouds of every size: the cost, and its growth."""
    logs, found = [], []
    for waiting, count in SIZES:
        snapshot = cloud(waiting, count, min(flavors, waiting))
        if is_bounded:
            snapshot = bounded(snapshot, NOW)
        begun_s = time.process_time()
        plan = planner.plan(snapshot, NOW, order)
        cost_s = time.process_time() - begun_s
        logs.append((math.log(waiting), math.log(cost_s)))
        found.append(
            {
                'requests': waiting,
                'hosts': count,
                'cpu_s': round(cost_s, 3),
                'start': len(plan.actions),
            }
        )
        print(found[-1], flush=True)
    slope = np.polyfit(*zip(*logs, strict=True), 1)[0]
    return {
        'order': type(order).__name__,
        'flavors': flavors,
        'bounded': is_bounded,
        'exponent': round(float(slope), 2),
        'plans': found,
    }


def main() -> None:
    """Measure."""
    out = recorded.parser(__doc__).parse_args().out
    found = [
        measure(flavors, order, is_bounded)
        for is_bounded in (False, True)
        for flavors in (50, 10_000)
        for order in (order_module.OldestFirst(), orders.FairTree())
    ]
    recorded.write(out, {'plans': found})


if __name__ == '__main__':
    main()
