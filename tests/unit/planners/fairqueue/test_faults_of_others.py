# SPDX-License-Identifier: Apache-2.0

"""Faults that users of other queues reported; none of them is here."""

import dataclasses
import itertools

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

ask, host = small_cloud.waiting_request, small_cloud.host

BY_SHARES = (
    orders.FairTree(),
    orders.FairTree(charge=0),
    orders.Multifactor(),
    orders.Synergy(),
    orders.DominantShare(),
    orders.Distribution(),
)
by_every_share = pytest.mark.parametrize(
    'order', BY_SHARES, ids=lambda each: type(each).__name__
)


def arranged(order, requests, **more):
    snapshot = small_cloud.cloud([host('h', vcpu=100)], requests, **more)
    return [each.uuid for each in order.arrange(requests, snapshot, 9.0)]


def started(plan):
    return {each.request for each in plan.actions}


@by_every_share
def test_a_share_of_0_comes_last(order):
    # Kueue: a weight of 0 came first.
    requests = [ask('none', project='p'), ask('some', project='q', at=5.0)]
    accounts = (cluster.Account('p', None, 0), cluster.Account('q'))
    there = {
        'accounts': accounts,
        'history': {'q': np.array([0.9, 0.9])},
        'used': {'q': np.array([90, 9000])},
    }
    assert arranged(order, requests, **there) == ['some', 'none']


@by_every_share
def test_every_order_works_with_unknown_accounts(order):
    # Kueue: a comparison was not transitive when a look-up failed.
    requests = [
        ask('a', project='known', at=3.0),
        ask('b', project='no account', at=2.0),
        ask('c', project='no history', at=1.0),
        ask('d', project='known', at=0.0, vcpu=0),
    ]
    there = {
        'accounts': (
            cluster.Account('known'),
            cluster.Account('no history', None, 2),
        ),
        'history': {'known': np.array([0.1, 0.0])},
    }
    first = arranged(order, requests, **there)
    for listed in itertools.permutations(requests):
        assert arranged(order, list(listed), **there) == first


def test_use_below_a_thousandth_affects_the_order():
    # Kueue: use below one thousandth of a unit was cut off.
    requests = [ask('a', project='p'), ask('b', project='q', at=5.0)]
    there = {'history': {'p': np.array([1e-9, 0.0])}}
    assert arranged(orders.FairTree(), requests, **there) == ['b', 'a']


def test_the_penalty_of_a_start_goes_with_it():
    # Kueue: the entry penalty leaked, or stayed after another admission.
    requests = [ask('a', project='p'), ask('b', project='q', at=5.0)]
    runs = {'granted': {'p': np.array([0.1, 0.0])}}
    order = orders.FairTree()
    assert arranged(order, requests, **runs) == ['b', 'a']
    assert arranged(order, requests) == ['a', 'b']


def test_a_project_that_grew_past_its_ceiling_starts_nothing():
    # Kueue: quota was passed by growing after admission.
    limits = {'p': cluster.Limits(ceiling={'VCPU': 4})}
    snapshot = small_cloud.cloud(
        [host('h', vcpu=100, used=9)],
        [ask('a', project='p')],
        limits=limits,
        used={'p': np.array([9, 0])},
    )
    plan = planner.plan(snapshot, 9.0)
    assert not started(plan)


def test_a_renamed_account_keeps_its_use():
    # Kueue: quota was passed by renaming after admission.
    for name in ('physics', 'renamed'):
        accounts = (
            cluster.Account(
                name,
                nominal=(('VCPU', 4),),
                borrowing_limit=(('VCPU', 0),),
            ),
            cluster.Account('p', name),
        )
        plan = planner.plan(
            small_cloud.cloud(
                [host('h', used=4)],
                [ask('a', project='p')],
                accounts=accounts,
                used={'p': np.array([4, 400])},
            ),
            9.0,
        )
        assert not started(plan)
        assert name in plan.waiting['a'].why.sentence


def test_users_of_equal_name_in_two_projects_are_separate():
    # Kueue: two queues of one name mixed up their positions.
    requests = [
        ask(f'{project}{n}', project=project, at=float(n))
        for n in range(2)
        for project in 'pq'
    ]
    snapshot = small_cloud.cloud(
        [host('h', used=8)],
        requests,
        history={'p/u': np.array([0.5, 0.0]), 'p': np.array([0.5, 0.0])},
    )
    plan = planner.plan(snapshot, 9.0, orders.FairTree())
    places = {name: each.position for name, each in plan.waiting.items()}
    assert places == {'q0': 1, 'q1': 2, 'p0': 3, 'p1': 4}


def test_one_kind_of_host_is_not_kept_for_waiters_of_another():
    # Kueue: the first of one flavor blocked another flavor.
    gpu = small_cloud.demand(4, required=frozenset({'CUSTOM_GPU'}))
    hosts = [
        host('with', used=6, traits=frozenset({'CUSTOM_GPU'})),
        host('without'),
    ]
    requests = [ask('first', demand=gpu), ask('other', 8, at=1.0)]
    plan = planner.plan(small_cloud.cloud(hosts, requests), 9.0)
    assert started(plan) == {'other'}


def test_a_hundred_tiny_users_dilute_no_share():
    # Volcano: a hundred tiny users made everybody's share one percent.
    tiny = [cluster.Account(f't{n}') for n in range(100)]
    accounts = (
        cluster.Account('p', None, 1),
        cluster.Account('q', None, 1),
        *tiny,
    )
    requests = [ask(f'p{n}', project='p') for n in range(50)]
    requests += [ask(f'q{n}', project='q', at=5.0) for n in range(50)]
    first = arranged(orders.FairTree(), requests, accounts=accounts)[:50]
    assert sum(name.startswith('q') for name in first) == 25
    factors = orders.FairTree().factors(
        requests,
        small_cloud.cloud([host('h')], requests, accounts=accounts),
        9.0,
    )
    assert all(each['project_use'] == 0 for each in factors.values())


def test_equal_priorities_lose_no_request():
    # FaSS: priorities were the keys of a map, equal ones lost a server.
    requests = [ask(f'r{n}') for n in range(20)]
    for order in BY_SHARES:
        assert len(set(arranged(order, requests))) == 20


@pytest.mark.parametrize('size', [8, 16])
def test_a_large_request_starts_despite_endless_small_requests(size):
    # Synergy: small servers passed the large one at the head for ever.
    hosts = [host(f'h{n}', vcpu=8) for n in range(size // 8)]
    snapshot = small_cloud.cloud(hosts)
    large = ask('large', 8, 'large', count=size // 8)
    ends: list[tuple[float, str]] = []
    for now in range(200):
        requests = [r for r in snapshot.requests if r.project == 'small']
        fresh = [
            ask(f's{now}-{n}', 1, 'small', at=float(now)) for n in range(16)
        ]
        waits = [large] if now > 5 else []
        snapshot = dataclasses.replace(
            snapshot, requests=tuple(waits + requests + fresh)
        )
        plan = planner.plan(
            snapshot, float(now), backfill=planner.Backfill(patience_s=50)
        )
        if 'large' in started(plan):
            break
        snapshot = small_cloud.cloud_after_plan(snapshot, plan, float(now))
        ends += [(now + 7.0, action.hosts[0]) for action in plan.actions]
        gone = [each for each in ends if each[0] <= now + 1]
        ends = [each for each in ends if each[0] > now + 1]
        snapshot = _without(snapshot, [name for _, name in gone])
    assert 'large' in started(plan)


def _without(snapshot, hosts):
    """The snapshot after a server of one VCPU ended on each of some hosts."""
    used = snapshot.inventory.used.copy()
    projects = {name: use.copy() for name, use in snapshot.used.items()}
    running = list(snapshot.running)
    rows = {each.name: row for row, each in enumerate(snapshot.providers)}
    for name in hosts:
        used[rows[name]] -= [1, 100]
        projects['small'] -= np.array([1, 100])
        oldest = next(each for each in running if each.host == name)
        running.remove(oldest)
    return dataclasses.replace(
        snapshot,
        inventory=dataclasses.replace(snapshot.inventory, used=used),
        used=projects,
        running=tuple(running),
    )


@pytest.mark.parametrize('count', [1, 4])
@pytest.mark.parametrize('now', [20.0, 1e5])
def test_own_servers_without_an_end_close_no_host_to_others(count, now):
    large = small_cloud.waiting_request('large', 8, 'evil', count=count)
    small = [
        small_cloud.waiting_request(f'small-{n}', 1, 'victim', 10.0)
        for n in range(28)
    ]
    hosts = [small_cloud.host(f'h{n}', 8, used=1) for n in range(4)]
    running = tuple(
        cluster.Running(
            f'h{n}',
            'evil',
            small_cloud.demand(1, 0).amounts,
            0.0,
            'u',
            f's{n}',
        )
        for n in range(4)
    )
    snapshot = small_cloud.cloud(hosts, [large, *small], running=running)
    plan = planner.plan(snapshot, now)
    assert {each.request for each in plan.actions} == {
        each.uuid for each in small
    }
    # Small ones of its own project still wait behind it.
    own = small_cloud.waiting_request('own', 1, 'evil', 5.0)
    snapshot = small_cloud.cloud(hosts, [large, own], running=running)
    plan = planner.plan(snapshot, now)
    assert {each.request for each in plan.actions} == (
        {'own'} if count == 1 else set()
    )


def test_servers_of_others_without_an_end_block_a_reservation():
    large = small_cloud.waiting_request('large', 8, 'p')
    hosts = [small_cloud.host('h1', 8, used=1)]
    amounts = small_cloud.demand(1, 0).amounts
    running = (cluster.Running('h1', 'other', amounts, 0.0, 'u', 's'),)
    small = small_cloud.waiting_request('small', 1, 'victim', 10.0)
    snapshot = small_cloud.cloud(hosts, [large, small], running=running)
    plan = planner.plan(snapshot, 1e5)
    assert not plan.actions
    assert plan.waiting['large'].reserved.hosts == ('h1',)
