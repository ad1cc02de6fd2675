# SPDX-License-Identifier: Apache-2.0

"""Estimates in pauses, on a clock that is turned by hand."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud
from tests.unit.planners.fairqueue import test_backfill

SNAPSHOT = small_cloud.cloud(
    [small_cloud.host('a', used=8)],
    [small_cloud.waiting_request('r', 8)],
    running=(test_backfill.runs('a', 8, 50.0),),
    lifetimes=small_cloud.equal_lifetimes(60, 8),
)
PLAN = planner.plan(SNAPSHOT, 100.0)
S = request.State


class FakeStore:
    """Keeps promises, and nothing of requests."""

    def __init__(self):
        self.kept = records.PromisedStarts({}, [])
        self.requests = {}
        self.error = None

    def read_estimated_starts(self):
        return self.kept

    def write_estimated_starts(self, promised, epoch):
        if self.error:
            raise self.error
        assert promised.version == self.kept.version
        self.kept = dataclasses.replace(promised, version=promised.version + 1)

    def request(self, uuid):
        return self.requests.get(uuid)


def stored(state, at):
    asked = small_cloud.waiting_request('r', 8)
    why = reason.why(reason.Reason.NOT_PLANNED)
    changed = dataclasses.replace(asked, state=state)
    return records.RequestRecord(changed, 'c', why, at)


HELD = stored(S.WAITING, 0.0)


class Pauses:
    """Every plan takes a second; a pause leaves time for three."""

    def __init__(self):
        self.tick = 0.0
        self.plans = 0
        self.error = None
        self.store = FakeStore()
        self.made = start_estimates.StartEstimates(
            self.store, self.plan, lambda _: 1.0, lambda: self.tick
        )

    def plan(self, snapshot, now):
        self.tick += 1.0
        self.plans += 1
        if self.error:
            raise self.error
        return planner.plan(snapshot, now)

    def work(self):
        self.made.compute(SNAPSHOT, PLAN, 100.0, 2.5 / start_estimates.PART)

    def told(self, now, found=(HELD,), waiting=('r',)):
        self.made.compare_with_outcomes(found, waiting, 1)
        return self.made.current_estimates(now)


@pytest.fixture
def pauses():
    return Pauses()


def test_estimation_continues_in_the_next_pause(pauses):
    for _ in range(6):
        pauses.work()
        assert pauses.told(100.0) == {}
    assert pauses.plans == 18
    pauses.work()
    assert pauses.plans == 20
    assert pauses.told(100.0)['r'].p50 == 110.0


def test_estimates_are_made_at_a_lower_rate_than_plans(pauses):
    for _ in range(7):
        pauses.work()
    pauses.tick = start_estimates.EVERY_S - 0.5
    pauses.work()
    assert pauses.plans == 20
    pauses.tick = start_estimates.EVERY_S
    pauses.work()
    assert pauses.plans == 23
    # The old ones are told meanwhile, as long as they can come true.
    assert pauses.told(110.0)
    assert pauses.told(110.5) == {}


def test_a_new_leader_starts_its_estimates_anew(pauses):
    for _ in range(7):
        pauses.work()
    pauses.made.reset()
    assert pauses.told(100.0) == {}
    pauses.work()
    assert pauses.plans == 23


def test_a_planner_that_fails_is_asked_again_later(pauses):
    pauses.error = exception.PluginMisbehaved('no')
    with pytest.raises(exception.PluginMisbehaved):
        pauses.work()
    pauses.error = None
    pauses.work()
    assert pauses.plans == 1
    pauses.tick = start_estimates.EVERY_S
    for _ in range(7):
        pauses.work()
    assert pauses.told(100.0)


def made(pauses):
    for _ in range(7):
        pauses.work()
    pauses.told(100.0)
    [(uuid, promise)] = pauses.store.kept.promises.items()
    assert (uuid, promise.made_at, promise.p50_s) == ('r', 100.0, 10.0)


@pytest.mark.parametrize(
    ('found', 'ended', 'late_s'),
    [
        ((stored(S.ACTIVE, 105.0),), None, -5.0),
        ((stored(S.ACTIVE, 305.0),), None, 195.0),
        ((), stored(S.EXPIRED, 305.0), 195.0),
        # It might have started in time, or nobody knows.
        ((), stored(S.CANCELLED, 105.0), None),
        ((), None, None),
    ],
)
def test_the_outcome_of_an_estimate_is_stored(pauses, found, ended, late_s):
    made(pauses)
    if ended:
        pauses.store.requests['r'] = ended
    pauses.told(300.0, found, ())
    assert pauses.store.kept.promises == {}
    past = [each.took_s - each.p90_s for each in pauses.store.kept.past]
    assert past == ([] if late_s is None else [late_s])


@pytest.mark.parametrize('state', [S.SENDING, S.STARTING])
def test_a_request_being_built_does_not_count_as_started(pauses, state):
    made(pauses)
    pauses.told(300.0, (stored(state, 105.0),), ())
    assert [*pauses.store.kept.promises] == ['r']


def server(launched_at):
    return nova.Server(
        'r', 'p', 'u', 'ACTIVE', '', 'a', launched_at=launched_at
    )


def test_times_of_builds_and_cycles_are_in_later_estimates(pauses):
    seen = pauses.made.record_delays
    seen((stored(S.STARTING, 50.0),), {}, 60.0)
    seen((stored(S.ACTIVE, 80.0),), {'r': server(57.0)}, 80.0)
    for _ in range(7):
        pauses.work()
    # Its room is free at 110; a cycle sees that ten seconds later, and Nova
    # builds it in seven.
    assert pauses.told(100.0)['r'].p50 == 127.0


def test_a_new_leader_knows_stored_estimates(pauses):
    made(pauses)
    pauses.made.reset()
    judged = pauses.made.compare_with_outcomes(
        (stored(S.ACTIVE, 105.0),), (), 1
    )
    assert judged == cluster.EstimateQuality(1, 1.0, 1.0, -5.0, -5.0)
    assert pauses.made.compare_with_outcomes((), (), 1) == judged


def test_estimates_that_could_not_be_written_are_read_again(pauses):
    for _ in range(7):
        pauses.work()
    pauses.store.error = exception.StoreAway('no')
    with pytest.raises(exception.StoreAway):
        pauses.told(100.0)
    pauses.store.error = None
    pauses.store.kept = records.PromisedStarts({}, [], 7)
    pauses.told(100.0)
    made(pauses)
    assert pauses.store.kept.version == 8


def test_a_request_that_started_meanwhile_gets_no_estimate(pauses):
    for _ in range(7):
        pauses.work()
    pauses.told(100.0, (stored(S.SENDING, 90.0),), ())
    assert pauses.store.kept.promises == {}
