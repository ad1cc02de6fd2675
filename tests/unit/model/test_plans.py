# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.model import plans
from tests.fixtures import store_contract

E, M, C = plans.PlanEvent, plans.MoveEvent, plans.PlanCause


def test_a_plan_goes_from_a_proposal_to_its_end():
    plan = store_contract.make_plan()
    for event, state in (
        (E.APPROVE, plans.PlanState.APPROVED),
        (E.BEGIN, plans.PlanState.RUNNING),
        (E.FINISH, plans.PlanState.DONE),
    ):
        plan = plan.stepped(event, 5.0, C.OPERATOR, 'why')
        assert plan.state is state
        assert (plan.changed_at, plan.cause, plan.text) == (
            5.0, C.OPERATOR, 'why',
        )  # fmt: skip
    assert {each.state for each in plan.moves} == {plans.MoveState.SKIPPED}
    with pytest.raises(
        exception.IllegalStep, match='this plan is done already'
    ):
        plan.stepped(E.STOP, 6.0, C.OPERATOR)


@pytest.mark.parametrize('event', [E.BEGIN, E.FINISH, E.FAIL])
def test_no_move_begins_before_its_plan_is_approved(event):
    with pytest.raises(exception.IllegalStep):
        store_contract.make_plan().stepped(event, 5.0, C.OPERATOR)


@pytest.mark.parametrize('event', [E.STOP, E.EXPIRE])
def test_a_begun_move_goes_on_when_its_plan_ends_and_others_are_skipped(event):
    plan = store_contract.make_plan().stepped(E.APPROVE, 2.0, C.AUTO)
    plan = plan.stepped(E.BEGIN, 2.0, C.AUTO)
    asked = plan.moves[0].stepped(M.ASK, 3.0, C.ASKED)
    ended = plan.with_move(0, asked).stepped(event, 4.0, C.OPERATOR)
    first, second = ended.moves
    assert (first.state, first.asked_at) == (plans.MoveState.MOVING, 3.0)
    assert (second.state, second.cause, second.ended_at) == (
        plans.MoveState.SKIPPED, C.PLAN_ENDED, 4.0,
    )  # fmt: skip
    assert ended.is_open
    assert ended.is_moving
    arrived = ended.with_move(0, first.stepped(M.ARRIVE, 5.0, C.ARRIVED))
    assert not arrived.is_moving
    assert arrived.is_open


def test_a_plan_without_moves_is_closed_when_it_ends():
    plan = store_contract.make_plan()
    assert plan.is_open
    assert not plan.stepped(E.EXPIRE, 4.0, C.LATE).is_open


def test_a_move_is_asked_for_again_only_after_a_proof():
    move = store_contract.make_plan().moves[0]
    moving = move.stepped(M.ASK, 3.0, C.ASKED)
    with pytest.raises(exception.IllegalStep):
        moving.stepped(M.ASK, 4.0, C.ASKED)
    back = moving.stepped(M.RETURN, 4.0, C.NOT_ASKED)
    assert (back.state, back.ended_at) == (plans.MoveState.PENDING, None)
    failed = moving.stepped(M.FAIL, 5.0, C.MIGRATION_FAILED, 'no')
    assert (failed.asked_at, failed.ended_at) == (3.0, 5.0)
    with pytest.raises(
        exception.IllegalStep, match='this move is failed already'
    ):
        failed.stepped(M.ASK, 6.0, C.ASKED)
