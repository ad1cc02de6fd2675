# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest

from nova_fairness.model import border as border_module
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner
from tests.fixtures import border

NOW = 100_000.0
OPEN, CLOSED = border.OPEN, border.CLOSED
DOWN, FOREIGN = border.DOWN, border.FOREIGN
V = border_module.BorderVerb
SEVEN = tuple(border_module.HostState)


def told(*nodes, rules=None, **more):
    plan = planner.plan(
        border.snapshot(*nodes, **more), NOW, rules or demand.BorderRules()
    )
    return [
        (each.host, each.step.value if each.step else each.verb.value)
        for each in plan.actions
    ], plan


def one(state, batch, cloud, fixed=False, until=NOW + 60, **more):
    """What is done to a host, and what is said of it."""
    node = border.node(state=state, fixed=fixed, until=until)
    actions, plan = told((node, batch, cloud), **more)
    return (actions[0][1] if actions else ''), ' '.join(plan.faults)


JOB = border.work('job')
VM = border.work('vm', way='moves')
JOBS = border.usage_at(JOB, place=CLOSED)
VMS = border.usage_at(VM, place=CLOSED)
STAYS = border.usage_at(border.work('vm'), place=CLOSED)


@pytest.mark.parametrize(
    ('state', 'batch', 'cloud', 'expected', 'said'),
    [
        # A good state is left alone.
        ('batch', OPEN, CLOSED, '', ''),
        ('cloud', CLOSED, OPEN, '', ''),
        ('batch', border.usage_at(JOB), CLOSED, '', ''),
        # What was closed for a move that was cancelled or is over.
        ('batch', CLOSED, CLOSED, 'open', ''),
        ('cloud', CLOSED, CLOSED, 'open', ''),
        ('batch', JOBS, CLOSED, 'open', ''),
        # What another hand closed stays closed.
        ('batch', FOREIGN, CLOSED, '', 'another hand: bad disk'),
        ('cloud', CLOSED, FOREIGN, '', 'another hand: bad disk'),
        ('batch', OPEN, FOREIGN, '', 'cloud has it closed by another hand'),
        # Known to one side only.
        ('batch', OPEN, None, '', 'cloud does not know it'),
        ('batch', None, CLOSED, '', 'batch does not know it'),
        ('cloud', None, OPEN, '', 'batch does not know it'),
        ('batch', OPEN, DOWN, '', 'service of cloud is down'),
        # Edited by hand: both sides use it.
        ('batch', OPEN, OPEN, 'lose', 'cloud uses it'),
        ('batch', OPEN, VMS, 'lose', 'cloud uses it'),
        ('cloud_asked', OPEN, OPEN, 'lose', 'cloud uses it'),
        ('leaving_batch', JOBS, OPEN, 'lose', 'cloud uses it'),
        ('cloud', OPEN, OPEN, 'lose', 'batch uses it'),
        ('batch_asked', JOBS, OPEN, 'lose', 'batch uses it'),
        ('leaving_cloud', OPEN, VMS, 'lose', 'batch uses it'),
        # Validation.
        ('cloud_asked', OPEN, CLOSED, 'accept', ''),
        ('batch_asked', CLOSED, OPEN, 'accept', ''),
        ('cloud_asked', OPEN, None, 'refuse', 'cloud does not know it'),
        ('cloud_asked', None, CLOSED, 'refuse', 'batch does not know it'),
        ('cloud_asked', OPEN, DOWN, 'refuse', 'is down'),
        ('cloud_asked', OPEN, FOREIGN, 'refuse', 'another hand'),
        ('batch_asked', FOREIGN, OPEN, 'refuse', 'another hand'),
        # Draining.
        ('leaving_batch', OPEN, CLOSED, 'close', ''),
        ('leaving_batch', border.usage_at(JOB), CLOSED, 'close', ''),
        ('leaving_batch', JOBS, CLOSED, '', ''),
        ('leaving_batch', CLOSED, CLOSED, 'arrive', ''),
        ('leaving_cloud', CLOSED, OPEN, 'close', ''),
        ('leaving_cloud', CLOSED, VMS, 'clear', ''),
        ('leaving_cloud', CLOSED, STAYS, '', ''),
        ('leaving_cloud', CLOSED, CLOSED, 'arrive', ''),
        # Hosts that fail or vanish on their way.
        ('leaving_batch', None, CLOSED, '', 'service of batch is away'),
        ('leaving_batch', DOWN, CLOSED, '', 'service of batch is away'),
        ('leaving_cloud', CLOSED, DOWN, '', 'service of cloud is away'),
        ('leaving_batch', CLOSED, DOWN, '', 'is down; it waits'),
        ('leaving_batch', CLOSED, None, 'cancel', 'does not know it'),
        ('leaving_batch', FOREIGN, CLOSED, 'cancel', 'bad disk'),
        ('leaving_cloud', FOREIGN, CLOSED, 'cancel', 'bad disk'),
        # What is unclear is left alone until it is clear.
        ('unclear', OPEN, OPEN, '', 'both sides use it'),
        ('unclear', CLOSED, CLOSED, '', 'neither side uses it'),
        ('unclear', None, None, '', 'neither side uses it'),
        ('unclear', OPEN, CLOSED, 'find_in_batch', ''),
        ('unclear', FOREIGN, OPEN, 'find_in_cloud', ''),
        ('unclear', JOBS, CLOSED, 'find_in_batch', ''),
        ('unclear', OPEN, None, 'find_in_batch', ''),
    ],
)
def test_a_host_takes_the_next_step_of_its_move(
    state, batch, cloud, expected, said
):
    done, faults = one(state, batch, cloud)
    assert done == expected
    assert said in faults
    assert bool(said) == bool(faults)


@pytest.mark.parametrize(
    ('state', 'batch', 'cloud', 'end_vms', 'expected'),
    [
        ('leaving_batch', JOBS, CLOSED, False, 'expire'),
        ('leaving_batch', JOBS, CLOSED, True, 'expire'),
        ('leaving_cloud', CLOSED, VMS, False, 'expire'),
        ('leaving_cloud', CLOSED, VMS, True, 'end'),
        ('leaving_batch', None, CLOSED, False, 'expire'),
        ('leaving_batch', CLOSED, DOWN, False, 'expire'),
        ('leaving_cloud', CLOSED, DOWN, True, 'expire'),
        # Whatever is late: what can still arrive does.
        ('leaving_batch', CLOSED, CLOSED, False, 'arrive'),
        ('leaving_batch', OPEN, CLOSED, False, 'close'),
    ],
)
def test_remaining_work_is_ended_after_the_time_to_live(
    state, batch, cloud, end_vms, expected
):
    rules = demand.BorderRules(end_vms=end_vms)
    assert one(state, batch, cloud, until=NOW, rules=rules)[0] == expected
    assert one(state, batch, cloud, until=NOW + 1)[0] not in ('expire', 'end')


@pytest.mark.parametrize('side', border_module.BorderSide)
def test_a_side_whose_entry_cannot_be_read_does_not_give_a_host_away(side):
    node = border.node(state='unclear')
    snapshot = border.snapshot((node, None, None))
    seen = dict(
        zip(
            border_module.BorderSide,
            (snapshot.batch, snapshot.cloud),
            strict=True,
        )
    )
    unread = dataclasses.replace(seen[side], unclear=frozenset({''}))
    plan = planner.plan(
        dataclasses.replace(snapshot, **{side.value: unread}),
        NOW,
        demand.BorderRules(),
    )
    assert not plan.actions
    assert f'its entry of {side.value} cannot be read' in ' '.join(plan.faults)


def test_the_time_to_live_begins_when_a_host_is_accepted():
    _, plan = told(border.node(state='cloud_asked'))
    assert plan.actions[0].until == NOW + demand.BorderRules().ttl_s


@pytest.mark.parametrize(
    ('state', 'expected'),
    [
        ('batch', ''),
        ('cloud_asked', 'refuse'),
        ('leaving_batch', 'cancel'),
        ('cloud', ''),
        ('batch_asked', 'refuse'),
        ('leaving_cloud', 'cancel'),
    ],
)
def test_a_fixed_host_stays_and_nothing_is_wrong_with_it(state, expected):
    node = border.node(state=state, fixed=True)
    done, faults = one(state, *border.usual_view(node), fixed=True)
    assert done == expected
    assert ('it is fixed' in faults) == bool(expected)


def test_only_vms_that_move_or_yield_are_sent_away():
    cloud = border.usage_at(
        border.work('z', way='moves'),
        border.work('stays'),
        border.work('a', way='yields'),
        place=CLOSED,
    )
    node = border.node(state='leaving_cloud', until=NOW + 1)
    _, plan = told((node, CLOSED, cloud))
    assert plan.actions[0].work == ('a', 'z')
    assert plan.actions[0].side is border_module.BorderSide.CLOUD


def test_vms_are_ended_by_name_and_jobs_never():
    node = border.node(state='leaving_cloud', until=NOW)
    _, plan = told((node, CLOSED, VMS), rules=demand.BorderRules(end_vms=True))
    assert plan.actions[0].verb is V.END
    assert plan.actions[0].work == ('vm',)


@pytest.mark.parametrize('away', ['batch', 'cloud'])
@pytest.mark.parametrize('state', SEVEN)
def test_while_one_side_is_away_nothing_moves(state, away):
    snapshot = border.snapshot(
        border.node(state=state.value, until=0.0),
        cloud=[border.wanting_job(99)],
    )
    plan = planner.plan(dataclasses.replace(snapshot, **{away: None}), NOW)
    assert plan.actions == ()
    assert len(plan.faults) == 1
    assert plan.faults[0].startswith(f'{away} gives no answer')


@pytest.mark.parametrize('state', sorted(border_module.MOVING, key=str))
def test_a_host_that_is_called_back_is_opened_where_it_was(state):
    node = border.node(state=state.value)
    back = node.stepped(
        border_module.HostEvent.CANCEL, NOW, border_module.HostCause.OPERATOR
    )
    _, plan = told((back, CLOSED, CLOSED))
    assert plan.actions[0].verb is V.OPEN
    assert plan.actions[0].side is border_module.only_user(state)


def test_actions_name_the_version_that_they_were_decided_on():
    _, plan = told(border.node(state='cloud_asked', version=17))
    assert plan.actions[0].version == 17


def test_a_host_with_an_error_does_not_stop_others():
    done, plan = told(
        (border.node('a'), OPEN, OPEN),
        border.node('b', state='cloud_asked'),
    )
    assert done == [('a', 'lose'), ('b', 'accept')]
    assert len(plan.faults) == 1
