# SPDX-License-Identifier: Apache-2.0

"""Who would make room next, while requests wait."""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import planner
from nova_fairness.planners.preemption import risk
from tests.fixtures import small_cloud
from tests.unit.planners.preemption import test_planner
from tests.unit.planners.preemption import test_properties

NOW, LENT, SOON = test_planner.NOW, test_planner.LENT, test_planner.SOON
ACCOUNTS = tuple(cluster.Account(name, None, 1) for name in 'pqr')
LATER = planner.PreemptionRules(patience_s=1e9, least_run_s=600.0)
"""Nobody leaves yet: whoever asks is to wait first."""


def full(*running, waits=(), **more):
    asked = [
        small_cloud.waiting_request(f'r{n}', 4, project, band=band)
        for n, (project, band) in enumerate(waits)
    ]
    snapshot = test_planner.cloud({'a': 8}, running, asked)
    return dataclasses.replace(snapshot, accounts=ACCOUNTS, **more)


def following(snapshot, most=10, rules=LATER):
    plan = planner.plan(snapshot, NOW, queue.plan, rules=rules)
    return risk.next_victims(snapshot, plan, NOW, rules, most)


def names(found):
    return [each.server for each in found]


NORMAL = ('q', request.Band.NORMAL)


def hoarder():
    return (
        test_planner.runs('old', 'a', 4, 'p', 9000.0),
        test_planner.runs('new', 'a', 4, 'p', 900.0),
    )


def test_the_cheapest_of_users_over_their_share_comes_first():
    found = following(full(*hoarder(), waits=[NORMAL]))
    assert names(found) == ['new', 'old']
    # All of the cloud, where half of it is its share.
    assert found[0].times == pytest.approx(2.0, rel=0.2)
    assert found[0].waiting == 1


def test_the_number_of_servers_at_risk_is_bounded():
    snapshot = full(*hoarder(), waits=[NORMAL])
    assert names(following(snapshot, most=1)) == ['new']
    assert following(snapshot, most=0) == []


def test_no_server_is_at_risk_while_no_request_waits_for_room():
    assert following(full(*hoarder())) == []


def test_a_server_of_a_user_within_the_share_is_not_at_risk():
    running = (
        test_planner.runs('mine', 'a', 2, 'p', 900.0),
        test_planner.runs('theirs', 'a', 6, 'r', 900.0),
    )
    assert names(following(full(*running, waits=[NORMAL]))) == ['theirs']


def test_a_server_that_leaves_or_began_just_now_is_not_at_risk():
    young = test_planner.runs('young', 'a', 4, 'p', 5.0)
    old, _ = hoarder()
    snapshot = full(old, young, waits=[NORMAL])
    assert names(following(snapshot)) == ['old']
    gone = dataclasses.replace(snapshot, leaving=frozenset({'old'}))
    assert following(gone) == []


def test_all_servers_of_a_group_are_at_risk_or_none():
    running = (
        test_planner.runs('one', 'a', 4, 'p', 900.0, group='g'),
        test_planner.runs('two', 'a', 4, 'p', 900.0, group='g'),
    )
    snapshot = full(*running, waits=[NORMAL])
    assert sorted(names(following(snapshot))) == ['one', 'two']
    assert following(snapshot, most=1) == []


@pytest.mark.parametrize(
    ('by_shares', 'found'), [(True, ['new', 'old']), (False, [])]
)
def test_risk_by_preemptible_requests_depends_on_shares(by_shares, found):
    snapshot = full(*hoarder(), waits=[('q', LENT)])
    rules = dataclasses.replace(LATER, by_shares=by_shares)
    assert names(following(snapshot, rules=rules)) == found


@hypothesis.given(test_properties.clouds(), st.integers(0, 6))
def test_only_preemptible_servers_that_do_not_leave_are_at_risk(
    snapshot, most
):
    plan = planner.plan(
        snapshot, NOW, functools.partial(queue.plan), rules=SOON
    )
    found = risk.next_victims(snapshot, plan, NOW, SOON, most)
    assert len(found) <= most
    lent = {each.uuid for each in snapshot.running if each.band is LENT}
    assert set(names(found)) <= lent - snapshot.leaving
    assert all(each.times > 1 and each.waiting for each in found)
    back = dataclasses.replace(snapshot, running=snapshot.running[::-1])
    assert risk.next_victims(back, plan, NOW, SOON, most) == found
