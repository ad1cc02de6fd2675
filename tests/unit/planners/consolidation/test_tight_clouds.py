# SPDX-License-Identifier: Apache-2.0

"""Plans on clouds with little room, judged by code of their own."""

import random

import pytest

from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import empty
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules
from tests.fixtures import small_cloud
from tests.unit.planners import tight_clouds

PARTIAL = rules.ConsolidationRules(partial=True)
CLOUDS = 50
"""Of each test; there are 20 of them for each goal but the slowest."""


def spread(snapshot):
    """Hosts in use, then how little they are filled one after the other.

    By how much of what is scarce they use, as Baadal fills them.
    """
    have = snapshot.inventory
    total = have.capacity.sum(axis=0)
    worth = snapshot.inventory.used.sum(axis=0) / total**2
    loads = [float(row @ worth) for row in have.used]
    return tight_clouds.busy(snapshot), -sum(load**2 for load in loads)


def on_first(snapshot):
    return sum(each.host == 'h0' for each in snapshot.running)


GOALS = {
    'consolidate': (planner.consolidate, tight_clouds.busy, 20),
    'partial': (
        lambda snapshot: planner.consolidate(snapshot, PARTIAL),
        spread,
        20,
    ),
    'balance': (balance.balance, tight_clouds.unevenness, 20),
    'empty': (lambda snapshot: empty.empty(snapshot, 'h0'), on_first, 20),
    'repack': (repack.repack, tight_clouds.busy, 3),
}
"""Planner, its measure, which each plan lowers, and number of tests."""


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('goal', 'part'),
    [(goal, part) for goal, (_, _, n) in GOALS.items() for part in range(n)],
)
def test_all_planned_moves_are_needed_and_improve_the_cloud(goal, part):
    make, measure, _ = GOALS[goal]
    for seed in range(part * CLOUDS, (part + 1) * CLOUDS):
        snapshot = tight_clouds.cloud(seed)
        moves = make(snapshot).moves
        if not moves:
            continue
        reached = tight_clouds.judged(snapshot, moves)
        assert measure(reached) < measure(snapshot), seed
        assert make(reached).moves == (), seed


@pytest.mark.parametrize('part', range(20))
def test_a_rescued_request_fits_afterwards(part):
    for seed in range(part * CLOUDS, (part + 1) * CLOUDS):
        chance = random.Random(seed)
        snapshot = tight_clouds.cloud(seed)
        asked = small_cloud.waiting_request(
            'new', chance.choice([2, 3, 4, 6]), memory=200,
            count=chance.choice([1, 1, 2]),
        )  # fmt: skip
        found = planner.rescue(snapshot, asked)
        if found is None or not found.moves:
            continue
        reached = tight_clouds.judged(snapshot, found.moves)
        assert places(reached, asked) >= len(asked.servers), seed
        again = planner.rescue(reached, asked)
        assert again is not None, seed
        assert again.moves == (), seed


def places(snapshot, asked):
    """How many servers of a request find room."""
    wanted = dict(asked.demand.amounts)
    free = (snapshot.inventory.capacity - snapshot.inventory.used).tolist()
    return sum(
        min(
            has // wanted[name]
            for name, has in zip(snapshot.classes, row, strict=True)
        )
        for row in free
    )
