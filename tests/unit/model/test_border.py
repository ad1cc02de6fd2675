# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.model import border

S, E, C = border.HostState, border.HostEvent, border.HostCause
HOST = border.SharedHost('h', 'node1', 'compute1', 8)


def walk(*events):
    node = border.BorderHost(HOST, S.BATCH)
    for now, event in enumerate(events):
        node = node.stepped(event, now, C.OPERATOR)
    return node


TO_CLOUD = (E.ASK, E.ACCEPT, E.ARRIVE)


@pytest.mark.parametrize(
    ('events', 'expected'),
    [
        ((E.ASK,), S.CLOUD_ASKED),
        ((E.ASK, E.CANCEL), S.BATCH),
        ((E.ASK, E.REFUSE), S.BATCH),
        ((E.ASK, E.ACCEPT), S.LEAVING_BATCH),
        ((E.ASK, E.ACCEPT, E.CANCEL), S.BATCH),
        ((E.ASK, E.ACCEPT, E.EXPIRE), S.BATCH),
        (TO_CLOUD, S.CLOUD),
        ((*TO_CLOUD, E.ASK), S.BATCH_ASKED),
        ((*TO_CLOUD, E.ASK, E.CANCEL), S.CLOUD),
        ((*TO_CLOUD, E.ASK, E.REFUSE), S.CLOUD),
        ((*TO_CLOUD, E.ASK, E.ACCEPT), S.LEAVING_CLOUD),
        ((*TO_CLOUD, E.ASK, E.ACCEPT, E.CANCEL), S.CLOUD),
        ((*TO_CLOUD, E.ASK, E.ACCEPT, E.EXPIRE), S.CLOUD),
        ((*TO_CLOUD, *TO_CLOUD), S.BATCH),
        ((E.LOSE,), S.UNCLEAR),
        ((E.LOSE, E.FIND_IN_BATCH), S.BATCH),
        ((E.LOSE, E.FIND_IN_CLOUD), S.CLOUD),
    ],
)
def test_a_host_follows_the_transition_table(events, expected):
    assert walk(*events).state is expected


@pytest.mark.parametrize('state', S)
@pytest.mark.parametrize('event', E)
def test_every_step_that_is_not_in_the_table_is_refused(state, event):
    then = border.STEPS[state].get(event)
    if then:
        assert border.state_after(state, event) is then
    else:
        with pytest.raises(exception.IllegalStep, match=event.value):
            border.state_after(state, event)


def test_a_host_move_can_be_cancelled_in_every_transit_state():
    can = {state for state in S if E.CANCEL in border.STEPS[state]}
    assert can == border.MOVING
    for state in can:
        stays = border.state_after(state, E.CANCEL)
        assert border.only_user(stays) is border.only_user(state)
        assert stays not in border.MOVING


def test_the_side_of_a_host_changes_by_arriving_alone():
    for state, steps in border.STEPS.items():
        for event, then in steps.items():
            sides = {border.only_user(state), border.only_user(then)}
            if event is E.ARRIVE:
                assert sides == set(border.BorderSide)
                assert state in border.LEAVING
            elif S.UNCLEAR not in (state, then):
                assert len(sides) == 1


def test_every_state_can_turn_out_to_be_wrong_and_none_is_the_end():
    for state in set(S) - {S.UNCLEAR}:
        assert border.state_after(state, E.LOSE) is S.UNCLEAR
    assert all(border.STEPS.values())


@pytest.mark.parametrize(
    ('state', 'owner', 'bound_for'),
    [
        (S.BATCH, 'batch', 'batch'),
        (S.CLOUD_ASKED, 'batch', 'cloud'),
        (S.LEAVING_BATCH, 'batch', 'cloud'),
        (S.CLOUD, 'cloud', 'cloud'),
        (S.BATCH_ASKED, 'cloud', 'batch'),
        (S.LEAVING_CLOUD, 'cloud', 'batch'),
    ],
)
def test_a_state_says_whose_a_host_is_and_will_be(state, owner, bound_for):
    assert border.only_user(state) is border.BorderSide(owner)
    assert border.future_system(state) is border.BorderSide(bound_for)


def test_a_host_in_an_unclear_state_has_no_owner():
    assert border.only_user(S.UNCLEAR) is None
    assert border.future_system(S.UNCLEAR) is None


def test_a_node_keeps_its_newest_steps():
    node = walk(*TO_CLOUD)
    assert [step.event for step in node.history] == list(TO_CLOUD)
    assert (node.since, node.version) == (2, 3)
    for now in range(border.REMEMBERED):
        node = node.stepped(E.ASK, now, C.DEMAND).stepped(
            E.CANCEL, now, C.DEMAND
        )
    assert len(node.history) == border.REMEMBERED
    assert node.history[-1] == border.HostStep(
        border.REMEMBERED - 1, E.CANCEL, S.CLOUD, C.DEMAND
    )


def test_the_time_to_live_ends_with_the_state_it_came_with():
    node = walk(E.ASK).stepped(E.ACCEPT, 5, C.CHECKED, until=60)
    assert node.until == 60
    assert node.stepped(E.CANCEL, 6, C.OPERATOR).until is None


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'name': 'h'}, "name 'h' is used by more than one"),
        ({'batch': 'node1'}, "batch name 'node1' is used"),
        ({'cloud': 'compute1'}, "cloud name 'compute1' is used"),
        ({'cores': 0}, "'other' must have cores, got 0"),
        ({'cores': float('inf')}, 'must have cores, got inf'),
    ],
)
def test_names_that_stand_for_two_machines_are_refused(change, message):
    other = border.SharedHost('other', 'node2', 'compute2', 8)
    nodes = (
        border.BorderHost(HOST),
        border.BorderHost(dataclasses.replace(other, **change)),
    )
    with pytest.raises(exception.BadPartition, match=message):
        border.Snapshot(nodes, None, None)


def test_all_errors_of_host_names_are_named_at_once():
    twice = (border.BorderHost(HOST), border.BorderHost(HOST))
    with pytest.raises(exception.BadPartition, match=r'name.*batch.*cloud'):
        border.Snapshot(twice, None, None)
