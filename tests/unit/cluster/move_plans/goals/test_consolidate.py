# SPDX-License-Identifier: Apache-2.0

"""Moves off a host that cannot be emptied any more are in vain."""

import pytest

from nova_fairness.cluster.move_plans.goals import consolidate
from nova_fairness.model import plans as model
from tests.unit.cluster.move_plans.goals import small_plan

S, C = model.MoveState, model.PlanCause


@pytest.mark.parametrize(
    ('state', 'cause', 'is_in_vain'),
    [
        (S.PENDING, None, False),
        (S.MOVED, C.ARRIVED, False),
        (S.FAILED, C.REFUSED, True),
        (S.SKIPPED, C.LOCKED, True),
        # It left its host, but by itself.
        (S.SKIPPED, C.SERVER_GONE, False),
        (S.SKIPPED, C.ELSEWHERE, False),
    ],
)
def test_a_move_is_vain_after_another_move_of_the_host_failed(
    state, cause, is_in_vain
):
    first = small_plan.move('s1', 'h1', state, cause)
    second, other = small_plan.move('s2', 'h1'), small_plan.move('s3', 'h2')
    plan = small_plan.plan(
        model.Goal.CONSOLIDATE,
        [first, second, other],
        empties=('h1', 'h2'),
    )
    goal = consolidate.ConsolidationGoal
    assert goal.is_in_vain(plan, second) is is_in_vain
    assert not goal.is_in_vain(plan, other)


def test_a_move_from_a_host_that_stays_in_use_is_never_vain():
    first = small_plan.move('s1', 'h1', S.FAILED, C.REFUSED)
    second = small_plan.move('s2', 'h1')
    plan = small_plan.plan(model.Goal.CONSOLIDATE, [first, second])
    assert not consolidate.ConsolidationGoal.is_in_vain(plan, second)
