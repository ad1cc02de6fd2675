# SPDX-License-Identifier: Apache-2.0

"""Plans between whole ones, beside the planner of the queue."""

import contextlib
import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud
from tests.unit.planners.fairqueue import test_properties as small_clouds

NOW = small_clouds.NOW
ASK, HOST = small_cloud.waiting_request, small_cloud.host
R = reason.Reason


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few are many, and the first two are ahead."""
    monkeypatch.setattr(scheduler, 'MANY', 0)
    monkeypatch.setattr(scheduler, 'AHEAD', 2)


class Counted:
    """A planner that remembers whom it was asked about."""

    def __init__(self, plan=planner.plan):
        self._plan = plan
        self.asked = []

    def __call__(self, snapshot, now):
        self.asked.append([each.uuid for each in snapshot.requests])
        return self._plan(snapshot, now)


def whole(snapshot, plan=planner.plan):
    """Planning after a whole plan, and the cloud in which it was done."""
    made = scheduler.Scheduler(plan)
    assert made.begin_cycle(len(snapshot.requests), NOW)
    return made, small_cloud.cloud_after_plan(
        snapshot, made.plan(snapshot, NOW), NOW
    )


def between(made, snapshot, now=NOW + 1):
    assert not made.begin_cycle(len(snapshot.requests), now)
    return made.plan(snapshot, now)


def started(plan):
    return [each.request for each in small_clouds.starts(plan)]


def full(*asked, used=8, **more):
    """A cloud of one host on which nothing is left."""
    return small_cloud.cloud([HOST('h', used=used)], asked, **more)


def line(count, vcpu=4, **more):
    """So many that wait in a row."""
    return [ASK(f'r{n}', vcpu, at=float(n), **more) for n in range(count)]


def with_used(snapshot, used):
    """The same cloud in which so many VCPUs of its host are in use."""
    now = dataclasses.replace(
        snapshot.inventory, used=np.array([[used, 0]], np.int64)
    )
    return dataclasses.replace(snapshot, inventory=now)


def joined_by(snapshot, *new):
    return dataclasses.replace(snapshot, requests=(*snapshot.requests, *new))


def test_a_plan_is_complete_for_short_queues_and_once_a_minute(monkeypatch):
    made, _ = whole(full(*line(9)))
    assert not made.begin_cycle(9, NOW + 59)
    assert made.begin_cycle(9, NOW + 60)
    assert made.begin_cycle(9, NOW - 1)
    monkeypatch.setattr(scheduler, 'MANY', 10)
    assert made.begin_cycle(9, NOW + 1)
    assert not made.begin_cycle(10, NOW + 1)
    made.require_full_plan()
    assert made.begin_cycle(10, NOW + 1)


def test_partial_plans_cover_the_front_and_answer_all_requests():
    plan = Counted()
    made, snapshot = whole(full(*line(9)), plan)
    assert between(made, snapshot, NOW) == planner.plan(snapshot, NOW)
    assert plan.asked[1:] == [['r0', 'r1']]


def test_a_request_with_reserved_room_starts_once_there_is_some():
    made, snapshot = whole(full(*line(9)))
    plan = between(made, with_used(snapshot, 4))
    assert started(plan) == ['r0']
    assert plan.waiting['r1'].reserved
    assert [each.position for each in plan.waiting.values()] == [*range(1, 9)]
    assert list(plan.waiting) == [f'r{n}' for n in range(1, 9)]


def test_all_requests_are_planned_if_the_front_leaves_room():
    plan = Counted()
    made, snapshot = whole(full(*line(9)), plan)
    assert started(between(made, with_used(snapshot, 0))) == ['r0', 'r1']
    # Somebody who was left out may be next now.
    assert [len(each) for each in plan.asked] == [9, 2, 9]


def test_a_new_request_is_placed_at_the_end_by_a_partial_plan():
    made, snapshot = whole(full(*line(9)))
    plan = between(made, joined_by(snapshot, ASK('new', 1, at=99.0)))
    assert list(plan.waiting)[-1] == 'new'
    assert plan.waiting['new'].position == 10
    behind = [ASK('new', 1, at=99.0), ASK('second', 1, at=98.0)]
    plan = between(made, joined_by(with_used(snapshot, 5), *behind))
    # What is left would be too little for who is first either way.
    whole_plan = planner.plan(joined_by(with_used(snapshot, 5), *behind), NOW)
    assert started(plan) == started(whole_plan)


def test_a_new_request_that_comes_first_stands_before_earlier_ones():
    made, snapshot = whole(full(*line(9)))
    plan = between(made, joined_by(snapshot, ASK('new', 1, at=0.5)))
    assert list(plan.waiting)[:3] == ['r0', 'new', 'r1']
    assert plan.waiting['r1'].why == reason.why(R.BEHIND_OTHERS, before=2) or (
        plan.waiting['r1'].why.reason is R.NO_ROOM
    )


def test_a_position_counts_all_requests_before():
    waits = [*line(9), ASK('small', 1, project='q', at=50.0)]
    made, snapshot = whole(full(*waits, used=7), planner.plan)
    assert snapshot.requests[-1].uuid == 'small'
    plan = between(
        made, joined_by(snapshot, ASK('new', 1, project='q', at=51.0))
    )
    assert plan.waiting['new'].why == reason.why(R.BEHIND_OTHERS, before=10)


def test_partial_plans_include_changed_and_late_requests():
    plan = Counted()
    asked = line(9)
    asked[5] = dataclasses.replace(asked[5], expires_at=NOW + 5)
    made, snapshot = whole(full(*asked), plan)
    changed = dataclasses.replace(snapshot.requests[7], version=3)
    now = dataclasses.replace(
        snapshot, requests=(*snapshot.requests[:7], changed)
    )
    assert not made.begin_cycle(8, NOW + 6)
    assert [each.request for each in made.plan(now, NOW + 6).actions] == ['r5']
    assert plan.asked[1] == ['r0', 'r1', 'r5', 'r7']


def test_partial_plans_include_whole_server_groups():
    group = request.Group('g', request.Rule.APART)
    asked = line(9)
    for n in (1, 7):
        asked[n] = dataclasses.replace(asked[n], group=group)
    plan = Counted()
    made, snapshot = whole(full(*asked), plan)
    between(made, snapshot)
    assert plan.asked[1] == ['r0', 'r1', 'r7']


def test_a_request_with_promised_room_gets_it_at_any_position():
    made, snapshot = whole(full(*line(9)))
    promised = dataclasses.replace(
        with_used(snapshot, 4), promised={'r7': ('h',)}
    )
    assert started(between(made, promised)) == ['r7']


def test_partial_plans_begin_with_projects_that_have_less():
    limits = {'q': cluster.Limits({}, {'VCPU': 4})}
    mine = ASK('mine', 4, project='q', at=0.0)
    snapshot = dataclasses.replace(
        full(mine, *line(9), limits=limits), used={'q': np.array([4, 0])}
    )
    made, snapshot = whole(snapshot)
    assert started(between(made, with_used(snapshot, 4))) == ['r0']
    less = dataclasses.replace(with_used(snapshot, 4), used={})
    assert started(between(made, less)) == ['mine']


def test_requests_within_guaranteed_quota_start_at_once():
    limits = {'q': cluster.Limits({'VCPU': 4})}
    mine = ASK('mine', 4, 'q', 99.0, demand=request.Demand((('VCPU', 4),)))
    made, snapshot = whole(full(*line(9), mine, limits=limits))
    now = with_used(snapshot, 4)
    assert started(between(made, now)) == ['mine']


@pytest.mark.parametrize('field', ['accounts', 'limits', 'providers'])
def test_with_other_limits_the_plan_is_whole(field):
    plan = Counted()
    made, snapshot = whole(full(*line(9)), plan)
    other = {
        'accounts': (cluster.Account('p'),),
        'limits': {'p': cluster.Limits()},
        'providers': (dataclasses.replace(snapshot.providers[0], zone='x'),),
    }
    between(made, dataclasses.replace(snapshot, **{field: other[field]}))
    assert len(plan.asked[1]) == 9


def test_new_requests_start_while_limits_hold_all_others():
    plan = Counted()
    made, snapshot = whole(full(*line(9, vcpu=99), used=0), plan)
    new = [ASK('new', 1, at=99.0)]
    assert started(between(made, joined_by(snapshot, *new))) == ['new']
    assert plan.asked[1:] == [['new']]


def test_many_newcomers_at_once_are_planned_with_all():
    plan = Counted()
    made, snapshot = whole(full(*line(9)), plan)
    new = [ASK(f'new{n}', 1, at=99.0) for n in range(9)]
    between(made, joined_by(snapshot, *new))
    assert len(plan.asked[1]) == 18


def test_no_room_is_made_for_requests_behind_possible_others():
    def making(snapshot, now):
        found = planner.plan(snapshot, now)
        if 'new' not in found.waiting:
            return found
        why = reason.why(R.ROOM_IS_MADE, servers=1.0)
        action = cluster.Action(
            cluster.Verb.MAKE_ROOM, 'new', 0, ('h',), why, ('s',)
        )
        return dataclasses.replace(found, actions=(action,))

    plan = Counted(making)
    made, snapshot = whole(full(*line(9)), plan)
    between(made, joined_by(snapshot, ASK('new', 1, at=99.0)))
    assert len(plan.asked[-1]) == 10


def test_an_order_gets_all_users_with_demand_in_partial_plans():
    """Shares count among those who want, also among those left out."""
    fair = functools.partial(planner.plan, order=orders.Multifactor())
    asked = [
        ASK(f'r{n}', 4, project=f'p{n % 3}', at=float(n)) for n in range(9)
    ]
    history = {f'p{n}': np.array([0.1 * n, 0.0]) for n in range(3)}
    made, snapshot = whole(full(*asked, history=history), fair)
    before = fair(snapshot, NOW + 1)
    plan = between(made, snapshot)
    for uuid in list(before.waiting)[:2]:
        assert plan.waiting[uuid] == before.waiting[uuid]


def test_changed_reasons_are_written_before_changed_numbers(monkeypatch):
    monkeypatch.setattr(scheduler, 'TOLD_AT_ONCE', 2)
    told = [
        reason.why(R.BEHIND_OTHERS, before=0),
        reason.why(R.NOT_PLANNED),
        reason.why(R.BEHIND_OTHERS, before=2),
        reason.why(R.NOT_PLANNED),
    ]
    asked = line(4)
    found = {
        each.uuid: records.RequestRecord(each, each.uuid, why, 0.0)
        for each, why in zip(asked, told, strict=True)
    }
    waiting = {
        each.uuid: cluster.Waiting(n, reason.why(R.BEHIND_OTHERS, before=n))
        for n, each in enumerate(asked, 1)
    }
    planned = cluster.Plan((), waiting)
    news = scheduler.Scheduler(planner.plan).changed_reasons(planned, found)
    assert [each.uuid for each, _ in news] == ['r1', 'r3']


@st.composite
def changed(draw, snapshot):
    """A cloud a moment later: servers ended, others ask, some gave up."""
    have = snapshot.inventory
    used = have.used.copy()
    for row in range(len(used)):
        if draw(st.booleans()):
            used[row] -= np.minimum(used[row], draw(st.integers(0, 6)))
    of_projects = {
        name: np.maximum(use - draw(st.integers(0, 6)), 0)
        for name, use in snapshot.used.items()
    }
    new = [
        dataclasses.replace(each, uuid=f'new-{each.uuid}')
        for each in draw(small_clouds.requests())
    ]
    stay = [each for each in snapshot.requests if draw(st.integers(0, 5))]
    return dataclasses.replace(
        snapshot,
        requests=(*stay, *new),
        used=of_projects,
        inventory=dataclasses.replace(have, used=used),
    )


BOUNDS = (st.integers(0, 3), st.integers(0, 3))


@contextlib.contextmanager
def bounded(sizes):
    """As few ahead as a test draws."""
    with pytest.MonkeyPatch.context() as patched:
        for name, size in zip(('AHEAD', 'OF_PROJECT'), sizes, strict=True):
            patched.setattr(scheduler, name, size)
        yield


@hypothesis.given(small_clouds.clouds(), st.tuples(*BOUNDS))
def test_an_unchanged_good_state_plans_nothing(snapshot, sizes):
    with bounded(sizes):
        made, later = whole(snapshot)
        plan = between(made, later, NOW)
    assert plan.actions == ()
    assert list(plan.waiting) == list(planner.plan(later, NOW).waiting)


@hypothesis.given(st.data(), small_clouds.clouds(), st.tuples(*BOUNDS))
def test_partial_plans_exceed_no_host_and_no_limit(data, snapshot, sizes):
    with bounded(sizes):
        made, later = whole(snapshot)
        later = data.draw(changed(later))
        plan = between(made, later, NOW)
    small_clouds.is_within_hosts(later, plan)
    small_clouds.is_within_limits(later, plan)
    small_clouds.has_answers(later, plan)
    small_clouds.keeps_groups(later, plan)


@hypothesis.given(st.data(), small_clouds.clouds(), st.tuples(*BOUNDS))
def test_partial_plans_delay_no_reservation(data, snapshot, sizes):
    snapshot = dataclasses.replace(snapshot, limits={}, accounts=())
    with bounded(sizes):
        made, later = whole(snapshot)
        later = data.draw(changed(later))
        plan = between(made, later, NOW)
    every = planner.plan(later, NOW)
    # A server that starts may end a reservation: its group must be with it.
    stay = after(later, every).waiting
    then = after(later, plan).waiting
    for uuid, each in every.waiting.items():
        if each.reserved and stay[uuid].reserved and uuid in then:
            kept = then[uuid].reserved
            assert kept
            if each.reserved.at is not None:
                assert kept.at is not None
                assert kept.at <= each.reserved.at


def after(snapshot, plan):
    """What is planned once a plan was carried out."""
    return planner.plan(small_cloud.cloud_after_plan(snapshot, plan, NOW), NOW)
