# SPDX-License-Identifier: Apache-2.0

"""Cost of a plan of the market of spending rates.

Hosts of two sizes have twenty servers each of five flavors, put there by
chance; rates are those of four classes, or of every server its own::

    python -m benchmarks.planners.market --out FILE
"""

import dataclasses
import math
import random
import time

import numpy as np

from benchmarks.queue import recorded
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.model import request
from nova_fairness.planners.market import planner

CLASSES = ('MEMORY_MB', 'VCPU')
ON_EACH = 20
RATES = (30.0, 60.0, 90.0, 120.0)


def market_of(hosts: int, with_classes: bool) -> market.MarketState:
    """Servers by chance on hosts that have room for half as much again."""
    chance = random.Random(hosts)
    sizes = np.array([[512 * 1024, 64 * 8], [1024 * 1024, 128 * 8]])
    capacity = np.array([sizes[n % 2] for n in range(hosts)], np.int64)
    used = np.zeros_like(capacity)
    running, bids = [], {}
    for n in range(hosts * ON_EACH):
        vcpus = 2 ** chance.randrange(5)
        amounts = (('MEMORY_MB', vcpus * 2048), ('VCPU', vcpus))
        row = chance.randrange(hosts)
        used[row] += [vcpus * 2048, vcpus]
        uuid = f's{n:06}'
        running.append(
            cluster.Running(f'host-{row:05}', 'p', amounts, 0.0, uuid=uuid)
        )
        rate = chance.choice(RATES)
        bids[uuid] = market.Bid(
            rate if with_classes else rate * (0.5 + chance.random()),
            vcpus,
            request.Demand(amounts),
            float(vcpus * 2048),
        )
    names = [f'host-{n:05}' for n in range(hosts)]
    return market.MarketState(
        cluster.ClusterSnapshot(
            CLASSES,
            tuple(cluster.Provider(f'uuid-{each}', each) for each in names),
            cluster.Inventory(capacity, used, capacity, used * 0 + 1),
            running=tuple(running),
        ),
        bids,
        cores={name: 64 * (1 + n % 2) for n, name in enumerate(names)},
    )


def after(
    given: market.MarketState, plan: market.MarketPlan
) -> market.MarketState:
    """The market once the plan was carried out."""
    running = tuple(
        dataclasses.replace(each, host=plan.stands[each.uuid].host)
        for each in given.cloud.running
    )
    row = {each.name: n for n, each in enumerate(given.cloud.providers)}
    used = np.zeros_like(given.cloud.inventory.used)
    for each in running:
        used[row[each.host]] += cluster.amounts_vector(
            dict(each.amounts), given.cloud.classes
        )
    inventory = dataclasses.replace(given.cloud.inventory, used=used)
    cloud = dataclasses.replace(
        given.cloud, running=running, inventory=inventory
    )
    return dataclasses.replace(given, cloud=cloud)


def changed(given: market.MarketState) -> market.MarketState:
    """The market when the rate of one of a hundred servers doubled."""
    bids = {
        uuid: dataclasses.replace(bid, rate=bid.rate * (1 + (n % 100 == 0)))
        for n, (uuid, bid) in enumerate(given.bids.items())
    }
    return dataclasses.replace(given, bids=bids)


def measured(hosts: int, with_classes: bool) -> dict[str, float]:
    """Seconds of CPU of the first plan, and of one as rates changed."""
    given = market_of(hosts, with_classes)
    begun_s = time.process_time()
    plan = planner.plan(given, 0.0)
    first_s = time.process_time() - begun_s
    given = changed(after(given, plan))
    begun_s = time.process_time()
    second = planner.plan(given, 0.0, planner.MarketRules(margin=0.0))
    second_s = time.process_time() - begun_s
    return {
        'hosts': hosts,
        'servers': hosts * ON_EACH,
        'cpu_s': round(first_s, 3),
        'moves': len(plan.moves),
        'level_before': round(plan.level[0], 4),
        'level_after': round(plan.level[1], 4),
        'blocked': len(plan.blocked),
        'changed_cpu_s': round(second_s, 3),
        'changed_moves': len(second.moves),
        'changed_moves_by_margin': len(planner.plan(given, 0.0).moves),
    }


def exponent(rows: list[dict[str, float]]) -> float:
    """Power of the size with which the cost grows."""
    logs = [(math.log(e['hosts']), math.log(e['cpu_s'])) for e in rows]
    return round(float(np.polyfit(*zip(*logs, strict=True), 1)[0]), 2)


def main() -> None:
    """Measure and record."""
    out = recorded.parser(__doc__ or '').parse_args().out
    # The first call loads scipy.
    planner.plan(market_of(5, with_classes=True), 0.0)
    found = {}
    for name, with_classes in (('four rates', True), ('own rates', False)):
        rows = [measured(n, with_classes) for n in (125, 250, 500, 1000)]
        found[name] = {'exponent': exponent(rows), 'plans': rows}
    recorded.write(out, found)


if __name__ == '__main__':
    main()
