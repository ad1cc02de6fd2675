# SPDX-License-Identifier: Apache-2.0

"""Plans that help owners on clouds with little room, judged on their own."""

import random

import pytest

from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner
from tests.unit.planners import tight_clouds
from tests.unit.planners.tenants import test_properties


def given(seed):
    """A tight cloud whose servers want CPUs."""
    chance = random.Random(seed)
    snapshot = tight_clouds.cloud(seed)
    wants = {
        each.uuid: tenants.ServerWant(
            chance.choice('uvwx'),
            chance.choice([0.0, 0.5, 1.0, 2.0, 3.0]),
            0.0,
            seen_s=900.0,
        )
        for each in snapshot.running
    }
    cpus = {
        each.name: chance.choice([2.0, 4.0]) for each in snapshot.providers
    }
    return test_properties.lived(tenants.Tenants(snapshot, wants, cpus))


@pytest.mark.repeated
@pytest.mark.parametrize('part', range(20))
def test_all_planned_moves_are_needed_and_improve_the_cloud(part):
    rules = planner.TenantRules(most=None)
    for seed in range(part * 50, part * 50 + 50):
        made = given(seed)
        found = planner.plan(made, 0.0, rules)
        if not found.plan.moves:
            continue
        tight_clouds.judged(made.cloud, found.plan.moves)
        reached = test_properties.carried_out(made, found)
        before, after = (
            sorted(test_properties.levels(each).values())
            for each in (made, reached)
        )
        assert after > before, seed
        assert planner.plan(reached, 0.0, rules).plan.moves == (), seed
