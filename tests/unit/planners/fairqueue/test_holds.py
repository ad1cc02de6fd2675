# SPDX-License-Identifier: Apache-2.0

"""Requests that are held or first, and where one fits on its own."""

import dataclasses

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import fitting
from nova_fairness.planners.fairqueue import planner

R = reason.Reason
HELD = request.Hold(request.Holder.OPERATOR, 0.0)


def request_at(name, vcpu, at=0.0, **more):
    return request.Request(
        name, more.pop('project', 'p'), 'u', (f's-{name}',),
        request.Demand((('VCPU', vcpu),)), at, **more,
    )  # fmt: skip


def snapshot(free, requests, **more):
    """Hosts of 8 VCPU with so many left."""
    shape = (len(free), 1)
    full = np.full(shape, 8, dtype=np.int64)
    used = full - np.array(free, dtype=np.int64).reshape(shape)
    providers = tuple(
        cluster.Provider(f'u{n}', f'h{n}') for n in range(len(free))
    )
    inventory = cluster.Inventory(full, used, full, np.ones_like(full))
    return cluster.ClusterSnapshot(
        ('VCPU',), providers, inventory, tuple(requests), **more
    )


def starts(plan):
    return [
        each.request for each in plan.actions if each.verb.value == 'start'
    ]


@pytest.mark.parametrize('seed', range(40))
def test_plans_are_those_of_a_cloud_without_the_held(seed):
    chance = np.random.default_rng(seed)
    every = [
        request_at(f'{n:02}', int(chance.integers(1, 9)), float(n),
              project=f'p{n % 3}', band=chance.choice(list(request.Band)))
        for n in range(12)
    ]  # fmt: skip
    is_held = chance.random(12) < 0.4
    with_holds = [
        dataclasses.replace(each, hold=HELD) if held else each
        for each, held in zip(every, is_held, strict=True)
    ]
    without = [e for e, held in zip(every, is_held, strict=True) if not held]
    free = chance.integers(0, 9, 4).tolist()
    found = planner.plan(snapshot(free, with_holds), 100.0)
    wanted = planner.plan(snapshot(free, without), 100.0)
    assert found.actions == wanted.actions
    told = {k: v for k, v in found.waiting.items() if k in wanted.waiting}
    assert told == wanted.waiting
    left = found.waiting.keys() - told.keys()
    assert left == {e.uuid for e in with_holds if e.hold}
    for uuid in left:
        assert found.waiting[uuid].why.reason is R.HELD_BY_OPERATOR
        assert found.waiting[uuid].reserved is None
    places = sorted(each.position for each in found.waiting.values())
    assert places == list(range(1, len(places) + 1))


@pytest.mark.parametrize('seed', range(40))
def test_a_request_put_first_precedes_its_whole_priority_class(seed):
    chance = np.random.default_rng(seed)
    band = list(request.Band)[seed % 2]
    every = [
        request_at(f'{n:02}', int(chance.integers(1, 9)), float(n), band=band)
        for n in range(8)
    ]
    limits = {'p': cluster.Limits({'VCPU': 16})} if seed % 4 > 1 else {}
    two = chance.choice(8, 2, replace=False)
    for turn, n in enumerate(two, 1):
        every[n] = dataclasses.replace(every[n], first=turn)
    free = chance.integers(0, 9, 3).tolist()
    seen = snapshot(free, every, limits=limits)
    found = planner.plan(seen, 100.0)
    first, second = (every[n] for n in two)
    alone = planner.plan(snapshot(free, [first], limits=limits), 100.0)
    assert (first.uuid in starts(found)) == bool(starts(alone))
    if not starts(alone):
        assert found.waiting[first.uuid].position == 1
        assert found.waiting[first.uuid].reserved is not None
    elif second.uuid in found.waiting:
        assert found.waiting[second.uuid].position == 1


def test_a_held_request_of_a_group_does_not_keep_its_mates():
    group = request.Group('g', request.Rule.APART)
    mates = [request_at('a', 2, group=group), request_at('b', 2, group=group)]
    mates[0] = dataclasses.replace(mates[0], hold=HELD)
    assert starts(planner.plan(snapshot([8], mates), 1.0)) == ['b']


def test_a_hold_of_the_owner_is_named_and_expires():
    hold = request.Hold(request.Holder.OWNER, 0.0, 'tomorrow')
    one = request_at('a', 2, hold=hold, expires_at=50.0)
    why = planner.plan(snapshot([8], [one]), 1.0).waiting['a'].why
    assert why.reason is R.HELD_BY_OWNER
    assert 'tomorrow' in why.sentence
    [action] = planner.plan(snapshot([8], [one]), 60.0).actions
    assert action.verb is cluster.Verb.EXPIRE


class TestFit:
    def test_the_fit_check_finds_a_host_with_room(self):
        one = request_at('a', 4)
        assert fitting.find_fit(snapshot([2, 5], [one]), one, {}).hosts == (
            'h1',
        )

    def test_the_fit_check_names_the_lacking_amount(self):
        one = request_at('a', 4)
        found = fitting.find_fit(snapshot([2, 3], [one]), one, {})
        assert (found.hosts, found.why.reason) == ((), R.NO_ROOM)
        assert dict(found.why.numbers) == {'asked': 4.0, 'free': 3.0}

    def test_the_fit_check_distinguishes_reserved_room_from_no_room(self):
        one, other = request_at('a', 4), request_at('b', 4)
        seen = snapshot([2, 5], [one, other])
        assert fitting.find_fit(seen, one, {'b': ['h1']}) == fitting.Fit()
        promised = dataclasses.replace(seen, promised={'b': ('h1',)})
        assert fitting.find_fit(promised, one, {}) == fitting.Fit()

    def test_the_fit_check_finds_own_reserved_room(self):
        one = request_at('a', 4)
        seen = snapshot([2, 5], [one], promised={'a': ('h1',)})
        assert fitting.find_fit(seen, one, {'a': ['h1']}).hosts == ('h1',)

    def test_the_fit_check_finds_room_beside_a_reservation(self):
        one, other = request_at('a', 3), request_at('b', 4)
        seen = snapshot([2, 7], [one, other], promised={'b': ('h1',)})
        assert fitting.find_fit(seen, one, {}).hosts == ('h1',)

    @pytest.mark.parametrize(
        ('rule', 'hosts'),
        [(request.Rule.APART, ('h1',)), (request.Rule.TOGETHER, ('h0',))],
    )
    def test_a_group_is_placed_by_its_rule(self, rule, hosts):
        one = request_at('a', 2, group=request.Group('g', rule))
        seen = snapshot([4, 8], [one], member_hosts={'g': ('h0',)})
        assert fitting.find_fit(seen, one, {}).hosts == hosts

    def test_a_group_without_another_host_is_refused(self):
        one = request_at('a', 2, group=request.Group('g', request.Rule.APART))
        seen = snapshot([4], [one], member_hosts={'g': ('h0',)})
        found = fitting.find_fit(seen, one, {})
        assert (found.hosts, found.why is None) == ((), False)
