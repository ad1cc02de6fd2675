# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.model import eviction
from nova_fairness.model import reason

E, S = eviction.EvictionEvent, eviction.EvictionState


@pytest.mark.parametrize('state', S)
@pytest.mark.parametrize('event', E)
def test_every_step_that_is_not_in_the_table_is_refused(state, event):
    then = eviction.STEPS[state].get(event)
    if then:
        assert eviction.state_after(state, event) is then
    else:
        with pytest.raises(exception.IllegalStep, match=event.value):
            eviction.state_after(state, event)


def test_no_server_is_evicted_without_a_notice():
    before_acting = {
        state
        for state, to in eviction.STEPS.items()
        if S.ACTING in to.values()
    }
    assert before_acting == {S.TOLD, S.ACTING, S.ASKED}
    into_told = {
        state for state, to in eviction.STEPS.items() if S.TOLD in to.values()
    }
    assert into_told == {S.CHOSEN}


def test_a_server_that_was_acted_on_is_undone_before_it_stays():
    spared = {
        state
        for state, to in eviction.STEPS.items()
        if S.SPARED in to.values()
    }
    assert spared == eviction.UNTOUCHED | {S.UNDOING}
    undone = {
        state
        for state, to in eviction.STEPS.items()
        if S.UNDOING in to.values()
    }
    assert undone == {S.TOLD, S.ACTING, S.ASKED}
    # Nothing leads back to where it would be acted on.
    assert set(eviction.STEPS[S.UNDOING].values()) <= eviction.FINAL
    assert {S.CHOSEN, S.TOLD, S.ACTING, S.ASKED} == eviction.GOING
    assert {S.GONE, S.RETURNED, S.STAYS, S.SPARED} == eviction.FINAL


def test_an_unknown_notice_or_run_costs_nothing():
    """Who was not told had no notice; who did not run lost no work."""
    why = reason.why(reason.Reason.MAKES_ROOM, 'q', ran_s=1.0)
    chosen = eviction.Eviction(
        's', 'p', 'u', eviction.EvictionCause.ROOM, why,
        (eviction.EvictionAction.STOP,),
        at=9.0, changed_at=1.0, vcpus=4, began_at=5.0,
    )  # fmt: skip
    assert (chosen.outcome, chosen.notice_s) == (None, None)
    gone = chosen.stepped(E.FREE, 2.0)
    assert (gone.outcome, gone.notice_s, gone.lost_vcpu_s) == (
        'freed', None, 0.0
    )  # fmt: skip
    told = chosen.stepped(E.TELL, 2.0, 8.0)
    assert (told.at, told.told_at, told.notice_s) == (8.0, 2.0, None)
    # It left by itself before it had to: that was its notice.
    assert told.stepped(E.FREE, 5.0).notice_s == 3.0
    # Clocks differ: it began to run only after the first action.
    acted = told.stepped(E.ACT, 4.0)
    assert (acted.notice_s, acted.lost_vcpu_s) == (2.0, 0.0)
    assert acted.answered
    late = told.stepped(E.ACT, 8.0)
    assert (late.answered, late.lost_vcpu_s) == (False, 12.0)
    again = acted.stepped(E.ACT, 8.0)
    assert (again.acted_at, again.tried) == (4.0, 2)
