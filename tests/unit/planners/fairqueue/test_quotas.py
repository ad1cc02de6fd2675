# SPDX-License-Identifier: Apache-2.0

"""Who owns a part of the cloud lends it, and gets it back first."""

import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

ask, host = small_cloud.waiting_request, small_cloud.host


def owner(name, vcpu, parent=None, **more):
    return cluster.Account(name, parent, nominal=(('VCPU', vcpu),), **more)


def cloud(requests, accounts, vcpu=8, used=None, **more):
    there = {name: np.array([much, 0]) for name, much in (used or {}).items()}
    full = sum((used or {}).values())
    return small_cloud.cloud(
        [host('h', vcpu=vcpu, used=full)],
        requests,
        accounts=accounts,
        used=there,
        **more,
    )


def started(plan):
    return [each.request for each in plan.actions]


def test_a_project_that_owns_nothing_borrows_idle_room():
    plan = planner.plan(cloud([ask('r', 8, 'q')], [owner('p', 8)]), 9.0)
    assert started(plan) == ['r']


def test_room_that_is_not_lent_is_left_for_its_owner():
    kept = owner('p', 8, lending_limit=(('VCPU', 2),))
    requests = [ask('large', 3, 'q'), ask('small', 2, 'q', at=1.0)]
    plan = planner.plan(cloud(requests, [kept]), 9.0)
    assert started(plan) == ['small']
    plan = planner.plan(cloud([ask('r', 6, 'p')], [kept], used={'q': 2}), 9.0)
    assert started(plan) == ['r']


def test_a_lender_gets_its_room_back_before_earlier_requests():
    requests = [
        ask('borrows', 4, 'q', at=0.0),
        ask('owns', 4, 'p', at=5.0),
    ]
    full = cloud(requests, [owner('p', 4)], used={'q': 4})
    assert started(planner.plan(full, 9.0)) == ['owns']
    # Beyond what it owns the project waits for its turn as others do.
    more = cloud(requests, [owner('p', 4)], used={'p': 4})
    assert started(planner.plan(more, 9.0)) == ['borrows']


def test_room_that_becomes_free_is_kept_for_its_lender():
    requests = [
        ask('borrows', 1, 'q', at=0.0),
        ask('owns', 4, 'p', at=5.0),
    ]
    lent = cloud(requests, [owner('p', 4)], used={'q': 6})
    plan = planner.plan(lent, 9.0)
    assert started(plan) == []
    assert list(plan.waiting) == ['owns', 'borrows']
    assert plan.waiting['owns'].why == reason.why(
        reason.Reason.NOMINAL_IS_LENT, 'VCPU of p', asked=4, free=2
    )
    assert plan.waiting['borrows'].why.reason is reason.Reason.BEHIND_OTHERS
    assert plan.waiting['owns'].why.sentence == (
        'it asks for 4 VCPU of p, which owns them while others use them; 2'
        ' can be had now, and it comes before those who borrow'
    )


def test_room_of_an_account_comes_back_to_all_accounts_below_it():
    accounts = [
        owner('physics', 6),
        cluster.Account('p1', 'physics'),
        cluster.Account('p2', 'physics'),
    ]
    requests = [
        ask('q', 2, 'q', at=0.0),
        ask('p1', 2, 'p1', at=5.0),
        ask('p2', 2, 'p2', at=6.0),
    ]
    plan = planner.plan(cloud(requests, accounts, used={'q': 4}), 9.0)
    assert started(plan) == ['p1', 'p2']


def test_an_owner_comes_before_borrowers_within_the_same_account():
    accounts = [
        cluster.Account('physics'),
        owner('p1', 4, 'physics'),
        cluster.Account('p2', 'physics'),
    ]
    requests = [ask('p2', 4, 'p2', at=0.0), ask('p1', 4, 'p1', at=5.0)]
    plan = planner.plan(cloud(requests, accounts, used={'p2': 4}), 9.0)
    assert started(plan) == ['p1']


def test_two_owners_share_without_taking_each_others_quota():
    requests = [ask(f'p{n}', 4, 'p', at=float(n)) for n in range(2)]
    requests.append(ask('q0', 4, 'q', at=5.0))
    accounts = [owner('p', 4), owner('q', 4)]
    plan = planner.plan(cloud(requests, accounts), 9.0)
    assert started(plan) == ['p0', 'q0']


@pytest.mark.parametrize(
    ('accounts', 'used', 'subject', 'asked', 'limit'),
    [
        (
            [owner('p', 2, borrowing_limit=(('VCPU', 1),))],
            {},
            'VCPU of p',
            2,
            1,
        ),
        (
            [
                cluster.Account('up', borrowing_limit=(('VCPU', 5),)),
                cluster.Account('p', 'up'),
                cluster.Account('q', 'up'),
            ],
            {'q': 2},
            'VCPU of up',
            6,
            5,
        ),
    ],
)
def test_a_project_at_its_borrowing_limit_waits_and_delays_no_other(
    accounts, used, subject, asked, limit
):
    requests = [ask('r', 4, 'p'), ask('other', 4, 'free', at=1.0)]
    plan = planner.plan(cloud(requests, accounts, used=used), 9.0)
    assert started(plan) == ['other']
    assert plan.waiting['r'].reserved is None
    assert plan.waiting['r'].why == reason.why(
        reason.Reason.OVER_BORROWING_LIMIT, subject, asked=asked, limit=limit
    )


def test_a_lender_gets_room_back_below_a_full_borrowing_limit():
    limited = owner('up', 4, borrowing_limit=(('VCPU', 0),))
    accounts = [
        limited,
        owner('lends', 4, 'up'),
        cluster.Account('borrows', 'up'),
        owner('beside', 2, 'up'),
    ]
    requests = [
        ask('small', 2, 'borrows', at=0.0),
        ask('large', 4, 'lends', at=5.0),
        ask('other', 2, 'free', at=6.0),
    ]
    there = cloud(requests, accounts, vcpu=20, used={'borrows': 8})
    plan = planner.plan(there, 9.0)
    # What is left below the limit is not for who borrowed it.
    assert started(plan) == ['other']
    assert plan.waiting['large'].why.reason is (
        reason.Reason.OVER_BORROWING_LIMIT
    )
    assert plan.waiting['small'].why.reason is reason.Reason.BEHIND_OTHERS
    # Who owns what they ask for waits for nobody.
    own = cloud(
        [*requests, ask('own', 2, 'beside', at=7.0)],
        accounts,
        vcpu=20,
        used={'borrows': 8},
    )
    assert started(planner.plan(own, 9.0)) == ['own', 'other']
    later = cloud(requests, accounts, vcpu=20, used={'borrows': 6})
    assert started(planner.plan(later, 9.0)) == ['large', 'other']


def test_preemptible_requests_neither_own_nor_borrow():
    limited = owner('p', 0, borrowing_limit=(('VCPU', 0),))
    request = ask('r', 4, 'p', band=small_cloud.request.Band.PREEMPTIBLE)
    assert started(planner.plan(cloud([request], [limited]), 9.0)) == ['r']


def test_dominant_share_counts_use_beyond_owned_parts():
    requests = [ask('p', 1, 'p', at=5.0), ask('q', 1, 'q')]
    own = cluster.Account('p', nominal=(('MEMORY_MB', 100), ('VCPU', 6)))
    there = cloud(requests, [own], vcpu=80, used={'p': 5, 'q': 2})
    order = orders.DominantShare()
    told = order.factors(requests, there, 9.0)
    assert told['p']['dominant_share'] == 0
    assert told['q']['dominant_share'] > 0


def test_a_class_beside_cpus_and_memory_is_owned_and_lent():
    # Synergy: only VCPUs and memory could be shared.
    accounts = [cluster.Account('p', nominal=(('MEMORY_MB', 6000),))]
    requests = [
        ask('q', 1, 'q', memory=6000),
        ask('p', 1, 'p', memory=6000, at=5.0),
    ]
    plan = planner.plan(cloud(requests, accounts), 9.0)
    assert started(plan) == ['p']
