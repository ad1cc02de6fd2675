# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.model import request
from tests.fixtures import small_cloud

S, E = request.State, request.Event


def walk(*events):
    state = S.WAITING
    for event in events:
        state = request.state_after(state, event)
    return state


@pytest.mark.parametrize(
    ('events', 'expected'),
    [
        ((E.RESERVE,), S.RESERVED),
        ((E.RESERVE, E.LOSE), S.WAITING),
        ((E.RESERVE, E.SEND, E.RETURN), S.RESERVED),
        ((E.RESERVE, E.SEND, E.SENT, E.START), S.ACTIVE),
        ((E.RESERVE, E.SEND, E.SENT, E.START, E.END), S.ENDED),
        ((E.RESERVE, E.SEND, E.SENT, E.FAIL), S.FAILED),
        ((E.RESERVE, E.SEND, E.SENT, E.END), S.ENDED),
        ((E.RESERVE, E.SEND, E.SENT, E.RETURN, E.LOSE), S.WAITING),
        ((E.CANCEL,), S.CANCELLED),
        ((E.RESERVE, E.EXPIRE), S.EXPIRED),
        ((E.FAIL,), S.FAILED),
    ],
)
def test_a_request_follows_the_transition_table(events, expected):
    assert walk(*events) is expected


@pytest.mark.parametrize('state', S)
@pytest.mark.parametrize('event', E)
def test_every_step_that_is_not_in_the_table_is_refused(state, event):
    then = request.STEPS[state].get(event)
    if then:
        assert request.state_after(state, event) is then
    else:
        with pytest.raises(exception.IllegalStep, match=event.value):
            request.state_after(state, event)


def test_a_request_passes_sending_before_anything_of_nova():
    behind = {S.STARTING, S.ACTIVE, S.ENDED}
    entries = {
        state
        for state, steps in request.STEPS.items()
        for then in steps.values()
        if then in behind and state not in behind
    }
    assert entries == {S.SENDING}


def test_a_request_that_may_have_been_sent_is_not_taken_back():
    for state in set(S) - request.UNSENT:
        assert E.CANCEL not in request.STEPS[state]
        assert E.EXPIRE not in request.STEPS[state]


def test_only_end_states_are_final():
    assert {S.ENDED, S.CANCELLED, S.EXPIRED, S.FAILED} == request.FINAL


def test_the_error_says_which_steps_there_are():
    with pytest.raises(
        exception.IllegalStep,
        match=r'sending: cancel is not possible; .* sent, return',
    ):
        request.state_after(S.SENDING, E.CANCEL)
    with pytest.raises(
        exception.IllegalStep, match='this request is ended already'
    ):
        request.state_after(S.ENDED, E.START)


def test_equal_demands_have_equal_hash_keys():
    assert len({small_cloud.demand(), small_cloud.demand()}) == 1


@pytest.mark.parametrize(
    ('project', 'user', 'name'),
    [('p', 'u', 'p/u'), (None, 'u', '/u'), ('p', None, 'p/'), ('', '', '/')],
)
def test_an_unknown_project_or_user_names_no_account(project, user, name):
    assert request.account_of(project, user) == name


def test_a_server_that_kept_its_room_runs_by_the_request_before():
    """Shelved and unshelved where it is, it has passed no queue."""
    spot = small_cloud.waiting_request('s', band=request.Band.PREEMPTIBLE)
    kept = dataclasses.replace(
        spot,
        uuid='u',
        demand=request.Demand(()),
        origin=request.Origin.UNSHELVE,
        band=request.Band.NORMAL,
    )
    anew = dataclasses.replace(kept, uuid='v', demand=spot.demand)
    assert request.newest_by_server([spot, kept]) == {'s': spot}
    assert request.newest_by_server([spot, kept, anew]) == {'s': anew}
    assert request.newest_by_server([spot, anew, kept]) == {'s': anew}
