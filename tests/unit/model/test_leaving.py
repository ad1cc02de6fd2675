# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from nova_fairness.model import leaving

E, S = leaving.Event, leaving.State


@pytest.mark.parametrize('state', S)
@pytest.mark.parametrize('event', E)
def test_every_step_that_is_not_in_the_table_is_refused(state, event):
    then = leaving.STEPS[state].get(event)
    if then:
        assert leaving.after(state, event) is then
    else:
        with pytest.raises(exception.IllegalStep, match=event.value):
            leaving.after(state, event)


def test_nobody_is_acted_on_who_was_not_told():
    before_acting = {
        state for state, to in leaving.STEPS.items() if S.ACTING in to.values()
    }
    assert before_acting == {S.TOLD, S.ACTING, S.ASKED}
    into_told = {
        state for state, to in leaving.STEPS.items() if S.TOLD in to.values()
    }
    assert into_told == {S.CHOSEN}


def test_who_was_acted_on_is_not_spared():
    spared = {
        state for state, to in leaving.STEPS.items() if S.SPARED in to.values()
    }
    assert spared == leaving.UNTOUCHED
    assert {S.GONE, S.RETURNED, S.STAYS, S.SPARED} == leaving.FINAL
