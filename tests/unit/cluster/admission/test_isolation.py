# SPDX-License-Identifier: Apache-2.0

"""One input on which the planner fails prevents no plan for others."""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.admission import scheduler
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

ASK, HOST = small_cloud.waiting_request, small_cloud.host
K, R = quarantine.InputKind, reason.Reason
NOW = 10_000.0


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Fails:
    """The queue's planner, which cannot be with some names."""

    def __init__(self, *names, error=ValueError):
        self.names = set(names)
        self.error = error
        self.runs = 0

    def __call__(self, snapshot, now):
        self.runs += 1
        known = {
            *(each.uuid for each in snapshot.requests),
            # An account without anything of its own is as if it were not.
            *(e.name for e in snapshot.accounts if e.ceiling),
            *(each.uuid for each in snapshot.running),
            *(each.name for each in snapshot.providers),
        }
        if self.names & known:
            raise self.error('x')
        return planner.plan(snapshot, now)


def made(plan):
    clock = Clock()
    table = quarantine.Quarantine(clock)
    planning = scheduler.Scheduler(plan, table, clock)
    planning.begin_cycle(0, NOW)
    return planning, table, clock


def started(plan):
    return {
        each.request
        for each in plan.actions
        if each.verb is cluster.Verb.START
    }


def asked(count, vcpu=1, **more):
    return [
        ASK(f'r{n}', vcpu, project=f'p{n % 7}', at=float(n), **more)
        for n in range(count)
    ]


@hypothesis.given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=5))
def test_all_other_requests_start_in_the_cycle_of_a_planner_error(count, bad):
    names = {f'r{n % count}' for n in bad}
    planning, table, _ = made(Fails(*names))
    snapshot = small_cloud.cloud([HOST('h', 100)], asked(count))
    plan = planning.plan(snapshot, NOW)
    assert started(plan) == {f'r{n}' for n in range(count)} - names
    assert table.names(K.REQUEST) == names
    assert plan.waiting.keys() == names
    assert {e.why.reason for e in plan.waiting.values()} <= {R.QUARANTINED}
    assert sorted(e.position for e in plan.waiting.values()) == list(
        range(1, len(names) + 1)
    )


def test_a_good_plan_is_made_once_and_of_the_same_snapshot():
    plan = Fails()
    planning, _, _ = made(plan)
    snapshot = small_cloud.cloud([HOST('h', 100)], asked(9))
    planning.plan(snapshot, NOW)
    assert plan.runs == 1
    assert planning.without_quarantined(snapshot) is snapshot


def test_a_request_set_aside_costs_nothing_until_it_is_tried_again():
    plan = Fails('r3')
    planning, _, clock = made(plan)
    snapshot = small_cloud.cloud([HOST('h', 100)], asked(9))
    planning.plan(snapshot, NOW)
    plan.runs = 0
    planning.begin_cycle(0, NOW + 30)
    planning.plan(snapshot, NOW + 30)
    assert plan.runs == 1
    clock.now += 61
    plan.names = set()
    planning.begin_cycle(0, NOW + 61)
    assert 'r3' in started(planning.plan(snapshot, NOW + 61))


def test_thousands_of_bad_ones_of_one_project_keep_no_other_back():
    bad = [ASK(f'bad{n}', 1, project='evil', at=float(n)) for n in range(3000)]
    good = [ASK(f'r{n}', 1, project=f'p{n}', at=1e4) for n in range(50)]
    plan = Fails(*(each.uuid for each in bad))
    planning, _, _ = made(plan)
    snapshot = small_cloud.cloud([HOST('h', 100)], [*bad, *good])
    found = planning.plan(snapshot, NOW)
    assert started(found) == {each.uuid for each in good}
    assert plan.runs <= 330
    # What could not be told apart is tried again in the next cycle.
    assert {e.why.reason for e in found.waiting.values()} == {
        R.QUARANTINED, R.NOT_PLANNED
    }  # fmt: skip


def test_a_request_set_aside_still_expires():
    late = ASK('r1', 1, expires_at=NOW - 1)
    planning, _, _ = made(Fails('r1'))
    snapshot = small_cloud.cloud([HOST('h')], [late])
    [action] = planning.plan(snapshot, NOW).actions
    assert action.verb is cluster.Verb.EXPIRE


def test_only_requests_below_a_failing_account_do_not_start():
    accounts = (
        cluster.Account('faculty', ceiling=(('VCPU', 1),)),
        cluster.Account('p1', 'faculty'),
        cluster.Account('p2', ceiling=(('VCPU', 100),)),
    )
    planning, table, _ = made(Fails('faculty'))
    snapshot = dataclasses.replace(
        small_cloud.cloud([HOST('h', 100)], asked(14)), accounts=accounts
    )
    found = planning.plan(snapshot, NOW)
    assert table.names(K.ACCOUNT) == {'faculty'}
    assert found.waiting.keys() == {'r1', 'r8'}
    assert {e.why.reason for e in found.waiting.values()} == {R.QUARANTINED}
    assert len(started(found)) == 12
    # Limits of others hold.
    assert accounts[2] in planning.without_quarantined(snapshot).accounts


def test_the_room_of_a_server_that_fails_stays_taken():
    running = cluster.Running('h', 'p', (('VCPU', 4),), 0.0, 'u', 's1')
    planning, table, _ = made(Fails('s1'))
    snapshot = dataclasses.replace(
        small_cloud.cloud([HOST('h', 8, used=4)], asked(8)), running=(running,)
    )
    found = planning.plan(snapshot, NOW)
    assert table.names(K.SERVER) == {'s1'}
    assert len(started(found)) == 4


def test_a_host_that_breaks_the_planner_gets_no_request():
    planning, table, _ = made(Fails('h1'))
    snapshot = small_cloud.cloud([HOST('h1', 8), HOST('h2', 8)], asked(12))
    found = planning.plan(snapshot, NOW)
    assert table.names(K.HOST) == {'h1'}
    assert {host for e in found.actions for host in e.hosts} == {'h2'}
    assert len(started(found)) == 8


def test_a_dispatched_request_is_never_left_out_of_a_plan():
    sent = dataclasses.replace(ASK('r9', 1), state=request.State.STARTING)
    planning, _, _ = made(Fails('r1'))
    snapshot = small_cloud.cloud([HOST('h', 8)], [ASK('r1', 1), sent])
    planning.plan(snapshot, NOW)
    assert sent in planning.without_quarantined(snapshot).requests


def test_a_planner_that_always_fails_raises_its_error():
    def fails(snapshot, now):
        raise ZeroDivisionError

    planning, table, _ = made(fails)
    with pytest.raises(ZeroDivisionError):
        planning.plan(small_cloud.cloud([HOST('h')], asked(3)), NOW)
    assert not table.names(K.REQUEST)


def test_an_order_that_fails_on_all_requests_quarantines_none():
    names = {f'r{n}' for n in range(8)}
    planning, table, _ = made(Fails(*names, error=exception.PluginMisbehaved))
    with pytest.raises(exception.PluginMisbehaved):
        planning.plan(small_cloud.cloud([HOST('h')], asked(8)), NOW)
    assert not table.names(K.REQUEST)


@pytest.mark.parametrize('error', [MemoryError, RecursionError, OverflowError])
def test_errors_of_the_interpreter_are_isolated_too(error):
    planning, table, _ = made(Fails('r2', error=error))
    snapshot = small_cloud.cloud([HOST('h', 100)], asked(5))
    assert len(started(planning.plan(snapshot, NOW))) == 4
    assert table.entry(K.REQUEST, 'r2').cause == error.__name__


def test_partial_plans_isolate_failing_requests_too(monkeypatch):
    monkeypatch.setattr(scheduler, 'MANY', 0)
    plan = Fails()
    planning, _, _ = made(plan)
    waits = asked(5, vcpu=4)
    snapshot = small_cloud.cloud([HOST('h', 4, used=4)], waits)
    planning.plan(snapshot, NOW)
    plan.names = {'bad'}
    new = [*waits, ASK('bad', 1, project='evil', at=NOW)]
    free = small_cloud.cloud([HOST('h', 4)], new)
    assert not planning.begin_cycle(6, NOW + 1)
    found = planning.plan(free, NOW + 1)
    assert len(started(found)) == 1
    assert found.waiting['bad'].why.reason is R.QUARANTINED


def test_the_search_for_a_failing_input_ends_in_time():
    clock = Clock()

    def slow(snapshot, now):
        clock.now += 3.0
        return Fails('r3')(snapshot, now)

    table = quarantine.Quarantine(clock)
    planning = scheduler.Scheduler(slow, table, clock)
    planning.begin_cycle(0, NOW)
    snapshot = small_cloud.cloud([HOST('h', 100)], asked(40))
    planning.plan(snapshot, NOW)
    assert clock.now <= 30.0


def test_a_cloud_without_hosts_has_a_valid_plan():
    planning, _, _ = made(functools.partial(planner.plan))
    snapshot = small_cloud.cloud([HOST('h')], asked(2))
    left = dataclasses.replace(
        snapshot,
        providers=(),
        inventory=cluster.Inventory(
            *(np.zeros((0, len(snapshot.classes)), np.int64),) * 4
        ),
    )
    assert not started(planning.plan(left, NOW))
