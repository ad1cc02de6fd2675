# SPDX-License-Identifier: Apache-2.0

"""A plugin that misbehaves is replaced, and tried again later."""

import functools
import threading

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.admission import plugin_fallbacks
from nova_fairness.cluster.admission import scheduler
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import planner
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import least_cost
from nova_fairness.planners.preemption import victims
from tests.fixtures import small_cloud

ASK, HOST = small_cloud.waiting_request, small_cloud.host
PLUGIN, REQUEST = quarantine.InputKind.PLUGIN, quarantine.InputKind.REQUEST
NOW = 10_000.0


class FakeClock:
    now = 0.0

    def __call__(self):
        return self.now


class FakeOrder(order.OldestFirst):
    """First come, first served; does something first."""

    def __init__(self, do):
        self.do, self.calls = do, 0

    def arrange(self, waiting, snapshot, now):
        self.calls += 1
        self.do(waiting)
        return super().arrange(waiting, snapshot, now)


class NewestFirst(order.OldestFirst):
    """Shows that this one made the plan."""

    def arrange(self, waiting, snapshot, now):
        return super().arrange(waiting, snapshot, now)[::-1]


def hangs(_):
    while True:
        pass


def waits(_):
    threading.Event().wait()


def fails(_):
    raise KeyError('x')


def leaves(_):
    raise SystemExit(3)


def fails_on_evil(waiting):
    if any(each.project == 'evil' for each in waiting):
        raise KeyError('x')


def loses_all(waiting):
    waiting.clear()


def asked(number=3):
    return [
        ASK(f'r{n}', 4, project=f'p{n}', at=NOW - 100 + n)
        for n in range(number)
    ]


class Made:
    """The queue's planner with an order that does something first."""

    def __init__(self, do, *others, deadline_s=0.1):
        self.clock = FakeClock()
        self.table = quarantine.Quarantine(self.clock)
        self.order = FakeOrder(do)
        found = {'mine': self.order}
        found.update((f'other{n}', e) for n, e in enumerate(others))
        found['newest'] = NewestFirst()
        self.orders = plugin_fallbacks.OrderFallbacks(
            found, self.table, deadline_s
        )
        plan = functools.partial(planner.plan, order=self.orders)
        self.planning = scheduler.Scheduler(plan, self.table, self.clock)

    def started(self, waiting):
        self.planning.begin_cycle(0, NOW)
        snapshot = small_cloud.cloud([HOST('h', 4)], waiting)
        found = self.planning.plan(snapshot, NOW)
        return [each.request for each in found.actions]


@pytest.mark.parametrize('do', [hangs, waits, fails, leaves])
def test_an_order_that_never_works_is_replaced_in_the_same_cycle(do):
    made = Made(do)
    assert made.started(asked()) == ['r2']
    assert made.table.names(PLUGIN) == {'order mine'}
    assert not made.table.names(REQUEST)


@pytest.mark.parametrize('do', [hangs, fails])
def test_a_replaced_order_is_tried_again_after_a_pause(do):
    made = Made(do)
    made.started(asked())
    calls = made.order.calls
    made.started(asked())
    assert made.order.calls == calls
    made.clock.now += 60
    made.order.do = len
    assert made.started(asked()) == ['r0']
    assert not made.table.names(PLUGIN)


def test_a_request_that_breaks_an_order_is_set_aside():
    made = Made(fails_on_evil)
    bad = ASK('bad', 4, project='evil', at=NOW - 200)
    assert made.started([bad, *asked()]) == ['r0']
    assert made.table.names(REQUEST) == {'bad'}
    assert not made.table.names(PLUGIN)


@pytest.mark.parametrize(('one', 'two'), [(hangs, fails), (fails, hangs)])
def test_the_built_in_order_is_used_when_all_others_fail(one, two):
    made = Made(one, FakeOrder(two))
    assert made.started(asked()) == ['r2']
    assert made.table.names(PLUGIN) == {'order mine', 'order other0'}


def test_the_built_in_order_has_no_replacement():
    last = {'last': FakeOrder(fails)}
    table = quarantine.Quarantine(FakeClock())
    orders = plugin_fallbacks.OrderFallbacks(last, table)
    plan = functools.partial(planner.plan, order=orders)
    planning = scheduler.Scheduler(plan, table)
    planning.begin_cycle(0, NOW)
    with pytest.raises(exception.PluginMisbehaved, match='FakeOrder'):
        planning.plan(small_cloud.cloud([HOST('h')], asked()), NOW)
    assert not table.names(PLUGIN)


def test_factors_come_from_the_order_that_replaced_another():
    class FakeFactors(FakeOrder):
        def factors(self, waiting, snapshot, now):
            hangs(waiting)

    made = Made(len)
    orders = plugin_fallbacks.OrderFallbacks(
        {'mine': FakeFactors(len), 'newest': NewestFirst()}, made.table, 0.1
    )
    waiting = asked(1)
    snapshot = small_cloud.cloud([HOST('h')], waiting)
    assert orders.factors(waiting, snapshot, NOW) == {'r0': {'waited_s': 100}}
    assert made.table.names(PLUGIN) == {'order mine'}


class FakeVictims(victims.Victims):
    description = 'A fake.'

    def __init__(self, do):
        self.do = do

    def choose(self, needs, field):
        self.do(needs)
        return []


@pytest.mark.parametrize('do', [hangs, fails, leaves, len])
def test_a_victim_policy_that_misbehaves_is_replaced(do):
    made = Made(len)
    policies = plugin_fallbacks.VictimFallbacks(
        {'mine': FakeVictims(do), 'least': least_cost.Least()},
        made.table,
        0.1,
    )
    field = candidates.VictimCandidates(
        free=np.array([[0]]),
        party=np.array([0]),
        row=np.array([0]),
        amounts=np.array([[4]]),
        servers=(('s1',),),
        owner=np.array([0]),
        since=np.array([0.0]),
        price=np.array([1.0]),
        level=np.array([1.0]),
        step=np.array([0.5]),
        now=NOW,
    )
    need = candidates.Need(
        (candidates.Piece(np.array([4]), np.array([True]), 1),),
        np.array([1]),
        np.array([True]),
    )
    found = policies.choose([need], field)
    assert found == [candidates.VictimChoice(((0,),), (0,))]
    assert made.table.names(PLUGIN) == {'victims mine'}
