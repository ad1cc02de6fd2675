# SPDX-License-Identifier: Apache-2.0

"""The planner run forward."""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud
from tests.unit.planners.fairqueue import test_backfill

ask, cloud, host = (
    small_cloud.waiting_request,
    small_cloud.cloud,
    small_cloud.host,
)
last, runs = small_cloud.equal_lifetimes, test_backfill.runs
NOW = 100.0
TEN = {kind: tuple(10.0 * n for n in range(1, 11)) for kind in last(1, 8)}


def kept(elapsed_s):
    return 0.5 ** (elapsed_s / 86400)


NO_DELAYS = estimates.Delays()


def forward(snapshot, now=NOW, plan=planner.plan, seed=0, delays=NO_DELAYS):
    chance = np.random.default_rng(seed)
    steps = estimates.estimate_starts(
        snapshot, plan(snapshot, now), now, plan, kept, chance, delays
    )
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def exact(at):
    return cluster.Estimate(at, at)


def full(*requests, lifetimes, since=50.0):
    return cloud(
        [host('a', used=8)],
        requests,
        running=(runs('a', 8, since),),
        used={'p': np.array([8, 100])},
        lifetimes=lifetimes,
    )


def test_requests_are_estimated_one_after_the_other():
    snapshot = full(*(ask(n, 8) for n in 'rst'), lifetimes=last(60, 8))
    assert forward(snapshot) == {
        'r': exact(110.0),
        's': exact(170.0),
        't': exact(230.0),
    }


def test_ends_are_seen_later_and_builds_take_their_time():
    snapshot = full(*(ask(n, 8) for n in 'rst'), lifetimes=last(60, 8))
    delays = estimates.Delays(seen_s=5.0, build_s=10.0)
    assert forward(snapshot, delays=delays) == {
        'r': exact(125.0),
        's': exact(200.0),
        't': exact(275.0),
    }


def test_a_request_that_starts_now_ends_in_time_too():
    snapshot = cloud(
        [host('a')], [ask('r', 8), ask('s', 8)], lifetimes=last(60, 8)
    )
    assert forward(snapshot) == {'s': exact(160.0)}


@pytest.mark.parametrize('size', [0, 4])
def test_without_known_lifetimes_nothing_is_estimated(size):
    [(kind, lifetimes)] = last(60, 8).items()
    snapshot = full(ask('r', 8), lifetimes={kind: lifetimes[:size]})
    assert forward(snapshot) == {}
    # Nor of one that is older than all before it.
    old = full(ask('r', 8), lifetimes=last(60, 8), since=39.0)
    assert forward(old) == {}


def test_a_request_behind_one_that_stays_has_no_estimate():
    # Nothing is known of q: it stays for ever.
    snapshot = full(ask('r', 8, 'q'), ask('s', 8), lifetimes=last(60, 8))
    assert forward(snapshot) == {'r': exact(110.0)}


def test_lifetimes_are_drawn_from_those_of_its_age():
    young = forward(full(ask('r', 8), lifetimes=TEN, since=NOW))['r']
    assert NOW + 30 <= young.p50 <= NOW + 70
    assert young.p50 < young.p90
    old = forward(full(ask('r', 8), lifetimes=TEN, since=NOW - 75))['r']
    assert {old.p50, old.p90} <= {105.0, 115.0, 125.0}


def test_equal_inputs_have_equal_estimates():
    snapshot = full(*(ask(n, 8) for n in 'rst'), lifetimes=TEN, since=90.0)
    assert forward(snapshot) == forward(snapshot)
    made = [forward(snapshot, seed=n)['t'] for n in range(4)]
    assert len(set(made)) > 1


def test_a_request_that_expires_before_has_no_estimate():
    first = ask('r', 8, expires_at=105.0)
    snapshot = full(first, ask('s', 8), lifetimes=last(60, 8))
    assert forward(snapshot) == {'s': exact(110.0)}


def test_room_that_an_expired_one_kept_is_given_at_that_moment():
    # Nothing is known of q on b: room is kept for r there until it expires.
    first = ask('r', 8, expires_at=105.0)
    snapshot = cloud(
        [host('a', used=8), host('b', used=2)],
        [first, ask('s', 4, at=1.0)],
        running=(runs('a', 8, 0.0, 'q'), runs('b', 2, 0.0, 'q')),
    )
    assert forward(snapshot) == {'s': exact(105.0)}


def test_a_request_that_can_never_start_hides_no_estimate_of_others(
    monkeypatch,
):
    monkeypatch.setattr(estimates, 'FOLLOWED', 1)
    snapshot = full(
        ask('never', 99), ask('r', 8), ask('s', 8), lifetimes=last(60, 8)
    )
    assert forward(snapshot) == {'r': exact(110.0)}


def test_a_request_that_is_set_aside_hides_no_estimate_of_others():
    snapshot = full(ask('r', 8), lifetimes=last(60, 8))
    why = reason.why(reason.Reason.QUARANTINED, again_s=60)

    def plan(seen, now):
        made = planner.plan(seen, now)
        aside = cluster.Waiting(2, why)
        waiting = {**made.waiting, 'aside': aside}
        return dataclasses.replace(made, waiting=waiting)

    assert forward(snapshot, plan=plan) == {'r': exact(110.0)}


def test_a_server_group_is_estimated_completely_or_not_at_all(monkeypatch):
    group = request.Group('g', request.Rule.TOGETHER)
    requests = [
        ask('r', 8),
        ask('s', 4, at=1.0, group=group),
        ask('t', 4, at=2.0, group=group),
    ]
    snapshot = full(*requests, lifetimes=last(60, 8) | last(60, 4))
    assert forward(snapshot) == {
        'r': exact(110.0),
        's': exact(170.0),
        't': exact(170.0),
    }
    monkeypatch.setattr(estimates, 'FOLLOWED', 2)
    assert forward(snapshot) == {'r': exact(110.0)}


def test_plans_of_a_sample_are_bounded(monkeypatch):
    monkeypatch.setattr(estimates, 'PLANS', 2)
    made = []

    def counted(*arguments):
        made.append(arguments)
        return planner.plan(*arguments)

    snapshot = full(*(ask(n, 8) for n in 'rst'), lifetimes=last(60, 8))
    assert list(forward(snapshot, plan=counted)) == ['r', 's']
    assert len(made) == 1 + 2 * estimates.SAMPLES


@pytest.mark.parametrize(('vcpu', 'apart_s'), [(4, 60.0), (8, 120.0)])
def test_a_started_request_counts_for_orders_by_shares(vcpu, apart_s):
    # Both use nothing now; each start puts the other project first.
    fair = functools.partial(planner.plan, order=orders.FairTree())
    requests = [ask(f'{p}{n}', vcpu, p) for p in 'pq' for n in range(3)]
    lifetimes = last(60, vcpu) | last(60, vcpu, 'q') | last(60, 8, 'other')
    snapshot = cloud(
        [host('a', used=8)],
        requests,
        running=(runs('a', 8, 50.0, 'other'),),
        lifetimes=lifetimes,
    )
    found = forward(snapshot, plan=fair)
    for p in 'pq':
        begun = sorted(found[f'{p}{n}'].p50 for n in range(3))
        assert np.diff(begun).tolist() == [apart_s, apart_s]


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(test_backfill.streams())
def test_estimates_are_exact_where_all_ends_are_known(stream):
    hosts, coming, lasts = stream
    coming = [dataclasses.replace(each, asked_at=0.0) for each in coming]
    learned = {name: (seconds,) * 5 for name, seconds in lasts.items()}
    made = test_backfill.Simulation(
        hosts, coming, lasts, learned, planner.Backfill()
    )
    made.waiting = {each.uuid: each for each in coming}
    found = forward(made.snapshot(), now=0.0)
    made.waiting = {}
    made.run(until=10_000.0)
    assert found == {
        uuid: exact(at) for uuid, at in made.began.items() if at > 0
    }


@st.composite
def uncertain(draw):
    """Full hosts, requests, and lifetimes of some projects."""
    hosts = [host(f'h{n}', used=8) for n in range(draw(st.integers(1, 3)))]
    project = st.sampled_from('pqr')
    running = tuple(
        runs(f'h{n}', 4, draw(st.integers(0, 100)), draw(project))
        for n in range(len(hosts))
        for _ in range(2)
    )
    requests = [
        ask(
            f'r{n:02}',
            draw(st.integers(1, 8)),
            draw(project),
            at=float(draw(st.integers(0, 5))),
        )
        for n in range(draw(st.integers(1, 8)))
    ]
    lifetimes = {}
    for name in draw(st.sets(project)):
        seconds = draw(st.lists(st.integers(1, 200), min_size=4, max_size=9))
        for vcpu in range(1, 9):
            [kind] = last(0, vcpu, name)
            lifetimes[kind] = tuple(sorted(map(float, seconds)))
    return cloud(hosts, requests, running=running, lifetimes=lifetimes)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(uncertain())
def test_estimated_quantiles_are_ascending(snapshot):
    found = forward(snapshot)
    assert found.keys() <= planner.plan(snapshot, NOW).waiting.keys()
    for each in found.values():
        assert NOW < each.p50 <= each.p90 < np.inf
    waits = sorted(snapshot.requests, key=lambda x: (x.asked_at, x.uuid))
    for place, first in enumerate(waits):
        for second in waits[place + 1 :]:
            if (first.project, first.demand) == (
                second.project,
                second.demand,
            ) and second.uuid in found:
                before = found.get(first.uuid, exact(NOW))
                assert before.p50 <= found[second.uuid].p50
                assert before.p90 <= found[second.uuid].p90
