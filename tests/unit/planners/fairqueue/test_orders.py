# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import slurm_fair_tree
from tests.fixtures import small_cloud

NOW = 1000.0
ORDERS = (
    orders.FairTree(),
    orders.FairTree(charge=0),
    orders.Multifactor(),
    orders.Synergy(),
    orders.DominantShare(),
    orders.Distribution(),
    orders.Distribution(vcpus=1, memory=1),
    orders.Fass(),
    orders.Fass(published=1),
    orders.AdmissionFairSharing(),
)
every_order = pytest.mark.parametrize(
    'order', ORDERS, ids=lambda each: type(each).__name__
)


def ask(name, project='p', user='u', **more):
    asked = small_cloud.waiting_request(name, project=project, **more)
    return dataclasses.replace(asked, user=user)


def cloud(requests, **more):
    hosts = [small_cloud.host('h', vcpu=100, memory=10_000)]
    return small_cloud.cloud(hosts, requests, **more)


def arranged(order, requests, **more):
    """Names of requests in an order."""
    snapshot = cloud(requests, **more)
    given = order.arrange(requests, snapshot, NOW)
    return [each.uuid for each in given]


def projects(order, requests, **more):
    of = {each.uuid: each.project for each in requests}
    return ''.join(of[name] for name in arranged(order, requests, **more))


@st.composite
def queues(draw):
    return [
        ask(
            f'r{n}',
            project=draw(st.sampled_from('pqr')),
            user=draw(st.sampled_from('uvw')),
            vcpu=draw(st.integers(1, 9)),
            at=float(draw(st.integers(0, 3))),
        )
        for n in range(draw(st.integers(0, 12)))
    ]


shares = st.sampled_from([0, 0.1, 1, 70])
trees = st.lists(
    st.builds(cluster.Account, st.sampled_from('pqrst'), share=shares),
    unique_by=lambda each: each.name,
).map(tuple)
histories = st.dictionaries(
    st.sampled_from(['p', 'q', 'p/u', 'q/v']),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(np.array),
)


@every_order
@hypothesis.given(
    queues(), trees, histories, st.randoms(use_true_random=False)
)
def test_every_request_comes_once_however_they_are_listed(
    order, requests, accounts, history, chance: random.Random
):
    there = {'accounts': accounts, 'history': history}
    names = arranged(order, requests, **there)
    assert sorted(names) == sorted(each.uuid for each in requests)
    listed = list(requests)
    chance.shuffle(listed)
    assert arranged(order, listed, **there) == names


@every_order
def test_equal_requests_come_in_the_order_of_submission(order):
    requests = [ask(f'r{n}', at=float(9 - n)) for n in range(5)]
    assert arranged(order, requests) == ['r4', 'r3', 'r2', 'r1', 'r0']


@every_order
def test_a_plan_can_be_made_in_every_order(order):
    requests = [ask('a'), ask('b', project='q'), ask('c')]
    plan = planner.plan(cloud(requests), NOW, order)
    assert len(plan.actions) == 3


@pytest.mark.parametrize(
    'order', [orders.FairTree(), orders.Distribution(vcpus=1, memory=0)]
)
def test_projects_take_turns_in_the_ratio_of_shares(order):
    requests = [
        ask(f'{project}{n}', project=project)
        for project in 'pq'
        for n in range(40)
    ]
    shares = (cluster.Account('p', None, 70), cluster.Account('q', None, 30))
    first = projects(order, requests, accounts=shares)[:40]
    assert first.count('p') == pytest.approx(28, abs=1)


def test_a_project_that_used_more_than_its_share_waits():
    requests = [ask('a', 'p'), ask('b', 'q', at=5.0)]
    history = {'p': np.array([0.5, 0.1])}
    for order in (orders.FairTree(), orders.FairTree(charge=0)):
        assert projects(order, requests, history=history) == 'qp'


def test_all_of_the_account_ahead_come_before_all_of_the_other():
    requests = [
        ask(f'{project}{user}{n}', project, user)
        for project in 'pq'
        for user in 'uv'
        for n in range(3)
    ]
    history = {
        'p': np.array([0.2, 0.0]),
        'q': np.array([0.1, 0.0]),
        'q/u': np.array([0.1, 0.0]),
    }
    order = orders.FairTree(charge=0)
    assert projects(order, requests, history=history) == 'q' * 6 + 'p' * 6
    names = arranged(order, requests, history=history)
    assert [name[1] for name in names[:6]] == list('vvvuuu')


def test_a_hundred_users_of_one_project_take_no_more_than_its_share():
    requests = [ask(f'p{n}', 'p', f'u{n}') for n in range(100)]
    requests += [ask(f'q{n}', 'q', at=9.0) for n in range(100)]
    first = projects(orders.FairTree(), requests)[:20]
    assert first.count('q') == 10


def test_requests_come_in_the_order_of_slurms_ranks():
    mixed = 0
    for seed in range(2000):
        chance = random.Random(seed)
        root = slurm_fair_tree.random_tree(chance)
        below = slurm_fair_tree.list_descendants(root)
        ranks = slurm_fair_tree.rank(root)
        requests = [
            ask(name, *name.split('/'), at=chance.random()) for name in ranks
        ]
        found = arranged(
            orders.FairTree(charge=0),
            requests,
            accounts=tuple(
                cluster.Account(
                    each.name, each.parent.name or None, each.shares
                )
                for each in below
            ),
            history={
                each.name: np.array([each.usage / 1000, 0.0]) for each in below
            },
        )
        place = [ranks[name] for name in found]
        assert place == sorted(place, reverse=True), seed
        mixed += len(set(place)) > 1
    assert mixed > 500


def test_a_share_of_zero_comes_last():
    requests = [ask('a', 'p'), ask('b', 'q', at=9.0)]
    none = (cluster.Account('p', None, 0),)
    for order in (orders.FairTree(), orders.Multifactor(), orders.Synergy()):
        assert projects(order, requests, accounts=none) == 'qp'


def test_a_long_wait_outweighs_shares_of_others():
    requests = [ask('a', 'p', at=-8 * 86400.0), ask('b', 'q', at=NOW)]
    history = {'p': np.array([0.9, 0.9]), 'q': np.array([0.1, 0.1])}
    fair = orders.Multifactor(fair_share=100, age=0)
    aged = orders.Multifactor(fair_share=100, age=1000)
    assert projects(fair, requests, history=history) == 'qp'
    assert projects(aged, requests, history=history) == 'pq'


def test_the_larger_comes_first_if_size_counts():
    requests = [ask('small', 'p'), ask('large', 'q', vcpu=50, at=9.0)]
    order = orders.Multifactor(fair_share=0, age=0, size=10)
    assert arranged(order, requests) == ['large', 'small']


def test_users_are_ordered_by_priorities_of_synergy():
    accounts = (
        cluster.Account('A', None, 70),
        cluster.Account('B', None, 30),
    )
    used = {'A': 4, 'B': 4, 'A/a1': 3, 'A/a2': 1, 'B/b1': 4}
    history = {name: np.full(2, n / 8) for name, n in used.items()}
    requests = [
        ask('of b1', 'B', 'b1'),
        ask('of a1', 'A', 'a1', at=1.0),
        ask('of a2', 'A', 'a2', at=2.0),
    ]
    names = arranged(
        orders.Synergy(), requests, accounts=accounts, history=history
    )
    assert names == ['of a2', 'of a1', 'of b1']


USED_UNEQUALLY = {
    'p': np.array([0.4, 0.5]),
    'p/u': np.array([0.4, 0.0]),
    'p/v': np.array([0.0, 0.5]),
    'q': np.array([0.1, 0.1]),
    'q/w': np.array([0.1, 0.1]),
}


def test_fass_compares_users_of_all_projects():
    requests = [
        ask('of v', 'p', 'v'),
        ask('of u', 'p', 'u', at=1.0),
        ask('of w', 'q', 'w', at=2.0),
    ]
    there = {'history': USED_UNEQUALLY}
    found = arranged(orders.Fass(), requests, **there)
    assert found == ['of w', 'of u', 'of v']
    # Use of all is 0.6. The shares are a quarter, a quarter and a half.
    factor = told(orders.Fass(), requests, 'of w', **there)['fair_share']
    assert factor == pytest.approx(2 ** (-(0.1 / 0.6) / 0.5))


def test_fass_as_published_has_its_faults():
    requests = [
        ask('of v', 'p', 'v'),
        ask('of w', 'q', 'w', at=1.0),
        ask('of u', 'p', 'u', at=2.0),
    ]
    there = {'history': USED_UNEQUALLY}
    published = orders.Fass(published=1)
    # The first user has no VCPUs, so that the use of all is taken for none.
    assert arranged(published, requests, **there) == ['of v', 'of w', 'of u']
    found = [
        told(published, requests, name, **there)['fair_share']
        for name in ('of v', 'of w', 'of u')
    ]
    assert found == pytest.approx([1, 1 / 2, 1 / 3])
    by_first = [
        dataclasses.replace(each, asked_at=each.asked_at - 9)
        if each.uuid == 'of w'
        else each
        for each in requests
    ]
    found = told(published, by_first, 'of u', **there)['fair_share']
    assert found == pytest.approx(2 ** (-(0.4 / 0.1) / 0.25) / 3)


def test_the_project_with_the_least_decayed_use_is_admitted_first():
    requests = [
        ask(f'{project}{n}', project, at=float(n))
        for n in range(3)
        for project in 'pq'
    ]
    history = {'p': np.array([0.2, 0.0]), 'q': np.array([0.1, 0.0])}
    alone = orders.AdmissionFairSharing(penalty=0)
    assert projects(alone, requests, history=history) == 'qqqppp'
    shares = (cluster.Account('p', None, 3), cluster.Account('q', None, 1))
    there = {'history': history, 'accounts': shares}
    assert projects(alone, requests, **there) == 'pppqqq'
    # A request is a hundredth of the VCPUs, and of memory.
    history = {name: np.array([0.1, 0.0]) for name in 'pq'}
    taken = orders.AdmissionFairSharing(penalty=0.1)
    assert projects(alone, requests, history=history) == 'pqpqpq'
    history['p'] = np.array([0.103, 0.0])
    assert projects(taken, requests, history=history) == 'qqpqpp'
    none = (cluster.Account('p', None, 0),)
    assert projects(alone, requests, accounts=none) == 'qqqppp'


def test_the_project_that_would_borrow_least_comes_first_as_in_kueue():
    requests = [ask('a', 'p', vcpu=10), ask('b', 'q', vcpu=4, at=9.0)]
    own = {'p': small_cloud.guaranteed(10, 1000)}
    order = orders.DominantShare()
    assert projects(order, requests) == 'qp'
    assert projects(order, requests, limits=own) == 'pq'


def test_the_project_below_the_desired_part_comes_first():
    requests = [ask('a', 'p'), ask('b', 'q', at=9.0)]
    used = {'p': np.array([1, 100]), 'q': np.array([1, 50])}
    assert projects(orders.Distribution(), requests, used=used) == 'qp'


def told(order, requests, name, **more):
    """Factors of one request."""
    snapshot = cloud(requests, **more)
    return order.factors(requests, snapshot, NOW)[name]


def test_factors_give_use_as_a_multiple_of_the_share():
    requests = [ask('a', 'p'), ask('b', 'p', 'v'), ask('c', 'q')]
    there = {
        'accounts': (cluster.Account('p', None, 1), cluster.Account('q')),
        'history': {
            'p': np.array([0.6, 0.1]),
            'p/u': np.array([0.5, 0.1]),
        },
    }
    for order in (orders.FairTree(), orders.Synergy(), orders.DominantShare()):
        found = told(order, requests, 'a', **there)
        assert found['project_use'] == pytest.approx(1.2)
        assert found['user_use'] == pytest.approx(2.0)
        assert told(order, requests, 'b', **there)['user_use'] == 0


def test_factors_omit_use_of_a_project_without_a_share():
    requests = [ask('a', 'p'), ask('c', 'q')]
    none = (cluster.Account('p', None, 0),)
    found = told(orders.Distribution(), requests, 'a', accounts=none)
    assert 'project_use' not in found
    lent = told(orders.DominantShare(), requests, 'a', accounts=none)
    assert 'dominant_share' not in lent


def test_factors_of_the_fair_tree_give_the_rank():
    requests = [ask('a', 'p'), ask('b', 'q'), ask('c', 'r')]
    history = {'p': np.array([0.5, 0.0]), 'q': np.array([0.2, 0.0])}
    ranks = [
        told(orders.FairTree(), requests, name, history=history)['fair_share']
        for name in 'abc'
    ]
    assert ranks == pytest.approx([1 / 3, 2 / 3, 1])


def test_factors_of_multifactor_give_all_summands():
    requests = [ask('a', vcpu=50, at=NOW - 86400.0)]
    order = orders.Multifactor(fair_share=1000, age=700, size=10)
    found = told(order, requests, 'a')
    assert found['age'] == pytest.approx(100)
    assert found['size'] == pytest.approx(5)
    assert found['fair_share'] == pytest.approx(1000)
    assert found['priority'] == pytest.approx(1105)


def test_factors_of_distribution_give_the_lead_of_a_project():
    requests = [ask('a', 'p', vcpu=10), ask('b', 'q')]
    found = told(orders.DominantShare(), requests, 'a')
    assert found['dominant_share'] == pytest.approx(100)
    used = {'p': np.array([1, 300]), 'q': np.array([1, 100])}
    found = told(orders.Distribution(), requests, 'a', used=used)
    assert found['beyond_desired'] == pytest.approx(0.25)


def test_granted_use_counts_in_later_cycles():
    requests = [ask('a', 'p'), ask('b', 'q', at=5.0)]
    there = {
        'history': {'q': np.array([0.01, 0.0])},
        'granted': {'p': np.array([0.1, 0.0])},
    }
    assert projects(orders.FairTree(), requests, **there) == 'qp'
    # Slurm knows only what was used.
    assert projects(orders.FairTree(charge=0), requests, **there) == 'pq'
    found = told(orders.FairTree(), requests, 'a', **there)
    assert found['project_use'] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ('charge', 'begun'), [(1, 'pqpqpqpq'), (0, 'pppppppp')]
)
def test_no_user_is_first_in_every_cycle(charge, begun):
    # With a half-life of years the ledger learns nothing in eight cycles.
    waiting = [
        ask(f'{project}{n}', project, at=float(n), memory=1)
        for n in range(8)
        for project in 'pq'
    ]
    history = {name: np.array([0.01, 0.0]) for name in 'q'}
    granted = {name: np.zeros(2) for name in 'pq'}
    found = ''
    for n in range(8):
        # Room for one more comes in every cycle.
        hosts = [small_cloud.host('h', vcpu=n + 1, used=n)]
        snapshot = small_cloud.cloud(
            hosts, waiting, history=history, granted=granted
        )
        plan = planner.plan(snapshot, NOW, orders.FairTree(charge=charge))
        [action] = plan.actions
        project = action.request[0]
        waiting = [each for each in waiting if each.uuid != action.request]
        granted = granted | {project: granted[project] + [0.1, 0.0]}
        found += project
    assert found == begun


BY_USE = (orders.FairTree(), orders.FairTree(charge=0), orders.Multifactor())


@pytest.mark.parametrize('order', BY_USE, ids=lambda each: str(each)[:22])
@pytest.mark.parametrize(
    ('weights', 'first'),
    [
        ({}, 'cpus'),
        ({'VCPU': 1.0}, 'memory'),
        ({'MEMORY_MB': 1.0}, 'cpus'),
        ({'VCPU': 1.0, 'MEMORY_MB': 0.25}, 'memory'),
        ({'VCPU': 0.5, 'MEMORY_MB': 0.5}, 'cpus'),
    ],
)
def test_resource_classes_count_by_their_weights(order, weights, first):
    requests = [
        small_cloud.waiting_request('cpus', project='p'),
        small_cloud.waiting_request('memory', project='q'),
    ]
    snapshot = small_cloud.cloud(
        [small_cloud.host('h', vcpu=1000, memory=1_000_000)],
        requests,
        history={'p': np.array([0.3, 0.0]), 'q': np.array([0.0, 0.6])},
        weights=weights,
    )
    assert order.arrange(requests, snapshot, 9.0)[0].uuid == first
