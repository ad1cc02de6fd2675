# SPDX-License-Identifier: Apache-2.0

"""Room that was made for a request stays its own, whoever joins its group."""

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

ask, cloud, host = (
    small_cloud.waiting_request,
    small_cloud.cloud,
    small_cloud.host,
)
R = reason.Reason
APART = request.Group('g', request.Rule.APART)
TOGETHER = request.Group('g', request.Rule.TOGETHER)
LEAVES = cluster.Running(
    'a',
    'q',
    small_cloud.demand(8).amounts,
    0.0,
    uuid='v',
    band=request.Band.PREEMPTIBLE,
)


def cloud_with_promise(asked, used=8, hosts=(), **more):
    """The first has a promise of the host a, whose victim leaves."""
    return cloud(
        [host('a', used=used), *hosts],
        asked,
        promised={'r': ('a',)},
        running=(LEAVES,) if used else (),
        leaving=frozenset(['v']) if used else frozenset(),
        **more,
    )


def hosts_of_started(plan):
    return {each.request: each.hosts for each in plan.actions}


@pytest.mark.parametrize('group', [APART, TOGETHER])
@pytest.mark.parametrize('at', [-1.0, 1.0])
def test_a_request_that_joins_a_group_takes_no_promise_from_it(group, at):
    asked = [
        ask('r', 8, group=group),
        ask('joins', 8, at=at, group=group),
        ask('other', 1, 'x', at=2.0),
    ]
    plan = planner.plan(cloud_with_promise(asked), 9.0)
    assert plan.waiting['r'].why.reason is R.ROOM_IS_MADE
    assert plan.waiting['r'].reserved == cluster.Reservation(('a',))
    assert plan.waiting['joins'].why.reason is not R.ROOM_IS_MADE
    # What the promised one waits for is nobody else's.
    plan = planner.plan(cloud_with_promise(asked, used=0), 9.0)
    assert hosts_of_started(plan) == {'r': ('a',)}


def test_a_joining_request_starts_on_its_own_where_there_is_room():
    asked = [ask('r', 8, group=APART), ask('joins', 1, at=1.0, group=APART)]
    plan = planner.plan(
        cloud_with_promise(asked, hosts=[host('b', used=7)]), 9.0
    )
    assert hosts_of_started(plan) == {'joins': ('b',)}
    assert plan.waiting['r'].why.reason is R.ROOM_IS_MADE


def test_a_promise_is_not_kept_against_the_rule_of_the_group():
    asked = [ask('r', 2, group=APART)]
    snapshot = cloud_with_promise(asked, used=0, member_hosts={'g': ('a',)})
    plan = planner.plan(snapshot, 9.0)
    assert hosts_of_started(plan) == {}


def test_a_lost_host_ends_only_its_own_promise():
    asked = [ask('r', 8, group=APART), ask('s', 8, at=1.0, group=APART)]
    snapshot = cloud(
        [host('a'), host('b', used=8)],
        asked,
        promised={'r': ('a',), 's': ('gone',)},
    )
    plan = planner.plan(snapshot, 9.0)
    assert hosts_of_started(plan) == {'r': ('a',)}
    assert plan.waiting['s'].why.reason is R.GROUP_HAS_NO_ROOM


def test_room_that_another_promised_one_needs_no_more_is_used_at_once():
    asked = [ask('r', 6), ask('s', 2, at=1.0)]
    snapshot = cloud(
        [host('a', used=4), host('b', used=2)],
        asked,
        promised={'r': ('a',), 's': ('a',)},
        running=(LEAVES,),
    )
    plan = planner.plan(snapshot, 9.0)
    assert hosts_of_started(plan) == {'r': ('b',), 's': ('a',)}


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-3, 3), st.integers(1, 3)),
        max_size=4,
    ),
    st.sampled_from([APART, TOGETHER]),
)
def test_no_other_request_gets_promised_room_however_it_asks(others, group):
    asked = [
        ask('r', 8, group=group),
        *(
            ask(f'j{n}', vcpu, at=float(at), count=count, group=group)
            for n, (vcpu, at, count) in enumerate(others)
        ),
        ask('other', 1, 'x', at=9.0),
    ]
    for used in (8, 0):
        plan = planner.plan(cloud_with_promise(asked, used), 20.0)
        on_a = [
            u for u, names in hosts_of_started(plan).items() if 'a' in names
        ]
        assert on_a == ([] if used else ['r'])
