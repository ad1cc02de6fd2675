# SPDX-License-Identifier: Apache-2.0

"""Servers that bind each other have hosts whenever there are any."""

import random

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import divisions
from nova_fairness.planners.fairqueue import groups
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud
from tests.unit.planners.fairqueue import cloud_oracle

ask, cloud = small_cloud.waiting_request, small_cloud.cloud
R = reason.Reason
NOW = 9.0


def apart(per_host=1, name='g'):
    return request.Group(name, request.Rule.APART, per_host)


def host(name, vcpu, memory, used=(0, 0), **more):
    provider = cluster.Provider(f'uuid-{name}', name, **more)
    return provider, (vcpu, memory), used


def asking(name, vcpu, memory, **more):
    return ask(name, demand=small_cloud.demand(vcpu, memory), **more)


def hosts_of_started(plan):
    return {each.request: each.hosts for each in plan.actions}


def reason_of(plan, name):
    why = plan.waiting[name].why
    return why.reason, dict(why.numbers)


def beside(hosts, asked, name, ends_at):
    """A cloud in which a member of the group runs on a host."""
    member = cluster.Running(
        name, 'p', (('VCPU', 1), ('MEMORY_MB', 1)), 0.0, ends_at=ends_at,
        group='g',
    )  # fmt: skip
    return cloud(hosts, asked, member_hosts={'g': (name,)}, running=(member,))


def test_a_group_that_fits_starts_though_the_largest_could_choose_wrongly():
    hosts = [host('a', 4, 4), host('b', 2, 8)]
    asked = [
        asking('r', 1, 4, group=apart()),
        asking('s', 4, 1, group=apart()),
    ]
    plan = planner.plan(cloud(hosts, asked), NOW)
    assert hosts_of_started(plan) == {'r': ('b',), 's': ('a',)}


def test_three_of_a_group_on_two_hosts_keep_no_other_back():
    asked = [ask(f'm{n}', at=n, group=apart()) for n in range(3)]
    others = [ask(f'n{n}', project='q', at=5.0 + n) for n in range(4)]
    for now in (NOW, 4000.0, 1e7):
        snapshot = cloud(
            [host('a', 8, 900), host('b', 8, 900)], asked + others
        )
        plan = planner.plan(snapshot, now)
        assert hosts_of_started(plan).keys() == {
            'm0',
            'm1',
            'n0',
            'n1',
            'n2',
            'n3',
        }
        assert reason_of(plan, 'm2') == (
            R.GROUP_TOO_LARGE,
            {'asked': 3, 'most': 2},
        )
        assert plan.waiting['m2'].reserved is None


def test_a_member_that_no_host_takes_keeps_the_others_of_its_group_no_more():
    asked = [ask('r', 9, group=apart()), ask('s', 1, at=1.0, group=apart())]
    plan = planner.plan(cloud([host('a', 8, 900)], asked), NOW)
    assert hosts_of_started(plan) == {'s': ('a',)}
    assert reason_of(plan, 'r')[0] is R.TOO_LARGE


def test_the_older_of_two_requests_for_one_host_starts():
    hosts = [host('a', 2, 4), host('b', 4, 8), host('c', 2, 4)]
    asked = [
        asking('r', 1, 8, at=2.0, group=apart()),
        asking('s', 4, 3, at=1.0, group=apart()),
    ]
    plan = planner.plan(cloud(hosts, asked), NOW)
    assert hosts_of_started(plan) == {'s': ('b',)}
    assert reason_of(plan, 'r') == (R.GROUP_TOO_LARGE, {'asked': 2, 'most': 1})


def test_a_request_for_several_starts_whole_or_not_at_all():
    asked = [
        ask('r', count=2, at=1.0, group=apart()),
        ask('s', count=2, at=2.0, group=apart()),
        ask('t', count=1, at=3.0, group=apart()),
    ]
    hosts = [host(name, 8, 900) for name in 'abc']
    plan = planner.plan(cloud(hosts, asked), NOW)
    assert hosts_of_started(plan).keys() == {'r', 't'}
    assert reason_of(plan, 's') == (R.GROUP_TOO_LARGE, {'asked': 5, 'most': 3})


OF_PROJECT = {'limits': {'p': cluster.Limits(ceiling={'VCPU': 10})}}
OF_ACCOUNT = {'accounts': (cluster.Account('p', ceiling=(('VCPU', 10),)),)}


@pytest.mark.parametrize(
    ('most', 'why'),
    [
        (OF_PROJECT, R.OVER_CEILING),
        (OF_ACCOUNT, R.OVER_ACCOUNT_CEILING),
    ],
)
def test_of_a_group_above_a_ceiling_the_oldest_below_it_start(most, why):
    asked = [
        ask('r', 7, group=apart(3)),
        ask('s', 6, at=1.0, group=apart(3)),
        ask('t', 3, at=2.0, group=apart(3)),
        ask('u', 11, at=3.0, group=apart(3)),
    ]
    plan = planner.plan(cloud([host('h', 64, 999)], asked, **most), NOW)
    assert sorted(hosts_of_started(plan)) == ['r', 't']
    assert [reason_of(plan, name)[0] for name in 'su'] == [why, why]
    assert not any(each.reserved for each in plan.waiting.values())
    after = small_cloud.cloud_after_plan(
        cloud([host('h', 64, 999)], asked, **most), plan
    )
    assert not planner.plan(after, NOW).actions


def test_a_left_out_request_waits_for_members_once_they_run():
    hosts = [host('a', 8, 900), host('b', 8, 900)]
    asked = [ask(f'm{n}', at=n, group=apart()) for n in range(3)]
    snapshot = cloud(hosts, asked)
    later = small_cloud.cloud_after_plan(
        snapshot, planner.plan(snapshot, NOW), NOW
    )
    plan = planner.plan(later, NOW)
    assert reason_of(plan, 'm2') == (
        R.GROUP_HAS_NO_ROOM,
        {'asked': 1, 'fit': 0},
    )
    assert plan.waiting['m2'].reserved is None


@pytest.mark.parametrize('ends_at', [None, 500.0])
def test_the_oldest_requests_that_fit_beside_a_member_start(ends_at):
    hosts = [host('a', 8, 900, used=(1, 1)), host('b', 8, 900)]
    asked = [ask(f'm{n}', at=n, group=apart()) for n in range(3)]
    plan = planner.plan(beside(hosts, asked, 'a', ends_at), NOW)
    assert hosts_of_started(plan) == {'m0': ('b',)}
    for name in ('m1', 'm2'):
        why = reason_of(plan, name)
        assert why == (R.GROUP_IS_FULL, {'asked': 3, 'most': 1})


def test_nothing_is_kept_for_requests_that_do_not_fit_beside_members():
    hosts = [host('a', 8, 900, used=(1, 1)), host('b', 8, 900, used=(8, 1))]
    asked = [ask(f'm{n}', at=n, group=apart()) for n in range(3)]
    plan = planner.plan(beside(hosts, asked, 'a', None), NOW)
    assert not plan.actions
    assert plan.waiting['m0'].reserved.hosts == ('b',)
    assert plan.waiting['m1'].reserved is None
    assert reason_of(plan, 'm0')[0] is R.GROUP_HAS_NO_ROOM
    assert reason_of(plan, 'm1')[0] is R.GROUP_IS_FULL


def test_a_group_waits_as_a_whole_where_none_fits_beside_its_members():
    hosts = [host('a', 8, 900, used=(1, 1))]
    asked = [ask(f'm{n}', at=n, group=apart()) for n in range(2)]
    plan = planner.plan(beside(hosts, asked, 'a', None), NOW)
    assert not plan.actions
    why = {name: reason_of(plan, name) for name in ('m0', 'm1')}
    assert why == {
        'm0': (R.GROUP_HAS_NO_ROOM, {'asked': 1, 'fit': 0}),
        'm1': (R.GROUP_TOO_LARGE, {'asked': 2, 'most': 1}),
    }


def test_members_that_start_leave_room_for_some_preemptible_ones():
    hosts = [host('a', 8, 900), host('b', 8, 900)]
    lent = request.Band.PREEMPTIBLE
    asked = [ask('r', group=apart())] + [
        ask(f'p{n}', at=n, group=apart(), band=lent) for n in range(2)
    ]
    plan = planner.plan(cloud(hosts, asked), NOW)
    assert sorted(hosts_of_started(plan)) == ['p0', 'r']
    assert reason_of(plan, 'p1')[0] is R.GROUP_HAS_NO_ROOM


@pytest.mark.parametrize('is_told', [True, False])
def test_a_request_that_waits_for_a_member_is_reserved_for_its_known_end(
    is_told,
):
    hosts = [host('a', 8, 900, (8, 100)), host('b', 8, 900, (8, 100))]
    member = cluster.Running(
        'a',
        'p',
        small_cloud.demand(8).amounts,
        0.0,
        uuid='m',
        ends_at=500.0,
    )
    other = cluster.Running('b', 'p', member.amounts, 0.0, uuid='o')
    snapshot = cloud(
        hosts,
        [ask('r', 8, group=apart()), ask('s', 8, at=1.0)],
        running=(member, other),
        member_hosts={'g': ('a',)},
        belongs={'m': 'g'} if is_told else {},
    )
    plan = planner.plan(snapshot, NOW)
    assert reason_of(plan, 'r')[0] is R.GROUP_HAS_NO_ROOM
    assert plan.waiting['r'].reserved == cluster.Reservation(('a',), 500.0)


def test_nothing_is_kept_for_the_room_of_a_staying_member():
    # Together they need ten of eight: it starts when the member ends.
    member = cluster.Running(
        'a', 'p', small_cloud.demand(6).amounts, 0.0, uuid='m', group='g'
    )
    together = request.Group('g', request.Rule.TOGETHER)
    snapshot = cloud(
        [host('a', 8, 900, (6, 100)), host('b', 8, 900, (8, 100))],
        [ask('r', 4, group=together), ask('s', 2, 'q', at=1.0)],
        running=(member,),
        member_hosts={'g': ('a',)},
    )
    plan = planner.plan(snapshot, NOW)
    assert hosts_of_started(plan) == {'s': ('a',)}
    assert plan.waiting['r'].reserved is None
    assert reason_of(plan, 'r')[0] is R.GROUP_HAS_NO_ROOM


def test_a_group_with_any_number_per_host_costs_no_more_memory_than_servers():
    many = request.Group('g', request.Rule.APART, 2**62)
    hosts = [host(f'h{n}', 2**31 - 1, 2**31 - 1) for n in range(3)]
    for demand in (small_cloud.demand(1, 1), request.Demand(())):
        asked = [
            ask('r', count=3, demand=demand, group=many),
            ask('s', count=2, demand=small_cloud.demand(2, 1), group=many),
            ask('t', count=4, demand=demand, at=1.0),
        ]
        plan = planner.plan(cloud(hosts, asked), NOW)
        assert hosts_of_started(plan).keys() == {'r', 's', 't'}


def random_group(seed):
    """Hosts, partly used, and requests of a group with unlike demands."""
    chance = random.Random(seed)
    hosts = [
        cloud_oracle.Host(
            f'h{n}',
            (chance.randint(3, 12), chance.randint(3, 12)),
            chance.choice(cloud_oracle.ZONES),
        )
        for n in range(chance.randint(1, 6))
    ]
    rule = apart(chance.choice([1, 1, 2, 3, 9]))
    asked = [
        asking(
            f'r{n}',
            chance.randint(1, 6),
            chance.randint(1, 6),
            count=chance.choice([1, 1, 2]),
            at=float(n),
            group=rule,
        )
        for n in range(chance.randint(2, 5))
    ]
    used = [
        tuple(chance.randint(0, most // 2) for most in each.room)
        for each in hosts
    ]
    return hosts, asked, used


def free_of(hosts, used):
    return {
        each: tuple(a - b for a, b in zip(each.room, have, strict=True))
        for each, have in zip(hosts, used, strict=True)
    }


def test_groups_have_hosts_exactly_if_all_layouts_that_are_tried_have_one():
    fits = 0
    for seed in range(400):
        hosts, asked, used = random_group(seed)
        free = free_of(hosts, used)
        best = cloud_oracle.layouts(hosts, asked, free.get, {})
        there = capacity.FreeRoom(
            cloud(
                [
                    host(e.name, *e.room, have, zone=e.zone)
                    for e, have in zip(hosts, used, strict=True)
                ],
                asked,
            )
        )
        found = there.find(order.Unit(tuple(asked)))
        assert (found is None) == (best is None), seed
        fits += best is not None
    assert 80 < fits < 320


@pytest.mark.parametrize('pairs', [2, 3, 5])
def test_beyond_the_bounds_a_group_waits_and_reserves_nothing(
    monkeypatch, pairs
):
    monkeypatch.setattr(groups, 'PAIRS', pairs)
    monkeypatch.setattr(groups, 'NODES', 1)
    # One of each pair for every host; whoever fills hosts in turn fails.
    hosts = [host('a', 8, 8), host('b', 8, 8)]
    asked = [
        asking('r', 4, 1, count=2, group=apart(9)),
        asking('s', 3, 3, count=2, at=1.0, group=apart(9)),
        asking('t', 1, 4, count=2, at=2.0, group=apart(9)),
        asking('u', 8, 8, project='q', at=3.0),
    ]
    plan = planner.plan(cloud(hosts, asked), NOW)
    if not hosts_of_started(plan).keys() >= {'r', 's', 't'}:
        assert hosts_of_started(plan).keys() == {'u'}
        assert reason_of(plan, 'r')[0].value not in cloud_oracle.NEVER
        assert plan.waiting['r'].reserved is None


@pytest.mark.parametrize('name', ['_SOLVED_OF_PROJECT', '_SOLVED'])
def test_programs_of_a_plan_have_so_many_pairs(monkeypatch, name):
    solved = []
    real = groups.programs.solve_integer_program

    def counted(cost, *given, **more):
        solved.append(len(cost))
        return real(cost, *given, **more)

    monkeypatch.setattr(groups.programs, 'solve_integer_program', counted)
    monkeypatch.setattr(capacity, name, 40)
    asked = [
        asking(
            f'{name}{n}',
            *amounts,
            count=count,
            at=float(n),
            group=apart(4, f'g{n}'),
        )
        for n in range(9)
        for name, amounts, count in (('r', (2, 4), 3), ('s', (5, 3), 4))
    ]
    sizes = [(5, 5), (11, 6), (3, 6), (11, 11)]
    hosts = [host(f'h{n}', *size) for n, size in enumerate(sizes)]
    planner.plan(cloud(hosts, asked), NOW)
    assert 0 < sum(solved) <= 40


def never_of(most):
    """Says that more than so many servers are too many."""

    def never(unit):
        if unit.count > most:
            return capacity.too_many_servers_reason(unit, most)
        return None

    return never


def test_a_group_that_fits_is_not_divided():
    units = [order.Unit((ask('r', group=apart()),))]
    found = divisions.divide_units(units, never_of(1), lambda _: None)
    assert found == (units, {})


def test_a_thousand_requests_of_a_group_are_divided_in_few_looks():
    looks = []

    def never(unit):
        looks.append(unit)
        return never_of(100)(unit)

    unit = order.Unit(
        tuple(ask(f'{n:04}', at=n, group=apart()) for n in range(1000))
    )
    units, left = divisions.divide_units([unit], never, lambda _: None)
    assert [each.uuid for each in units[0].requests] == [
        f'{n:04}' for n in range(100)
    ]
    assert len(left) == 900
    assert len(looks) < 30


def test_a_large_group_has_hosts_in_bounded_work():
    """A thousand unlike servers on as many hosts, each on its own."""
    hosts = [host(f'h{n:04}', 2 + n % 7, 2 + n % 5) for n in range(1000)]
    asked = [
        asking(f'r{n:04}', 1 + n % 6, 1 + n % 4, at=float(n), group=apart())
        for n in range(700)
    ]
    plan = planner.plan(cloud(hosts, asked), NOW)
    placed = [name for each in plan.actions for name in each.hosts]
    assert len(placed) == len(set(placed)) == 700


def test_a_choice_of_a_solver_is_checked():
    hosts = cloud([host('a', 4, 4)], [])
    shape = capacity.FreeRoom(hosts).hosts.shape(small_cloud.demand(3, 3))
    jobs = [groups.AlikeServers(shape, 2)]
    rows = (np.array([0, 0]),)
    free, limit = np.array([[4], [4]]), np.array([9])
    assert groups._check_solution(rows, free, jobs, limit) is None
    assert groups._check_solution((rows[0][:1],), free, jobs, limit) is None
    one = [groups.AlikeServers(shape, 1)]
    found = groups._check_solution((rows[0][:1],), free, one, limit)
    assert found.fit == 1
    assert groups._check_solution((rows[0][:1],), free, one, limit * 0) is None
