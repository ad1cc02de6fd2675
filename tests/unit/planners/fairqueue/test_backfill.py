# SPDX-License-Identifier: Apache-2.0

"""Reservations, and who may start before the first that does not fit."""

import collections
import dataclasses
import itertools
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

ask, cloud, host = (
    small_cloud.waiting_request,
    small_cloud.cloud,
    small_cloud.host,
)
last = small_cloud.equal_lifetimes
R = reason.Reason


def runs(name, vcpu, since, project='p'):
    return cluster.Running(
        name, project, small_cloud.demand(vcpu).amounts, since
    )


def started(plan):
    return {
        each.request: each.hosts
        for each in plan.actions
        if each.verb is cluster.Verb.START
    }


# Two hosts of eight; at 100 six VCPUs run on a until 150, eight on b for ever.
HOSTS = [host('a', used=6), host('b', used=8)]
RUNNING = (runs('a', 6, 50.0), runs('b', 8, 50.0))
LIFETIMES = last(100, 6) | last(30, 1) | last(80, 2)
BIG = ask('big', 8, at=90.0)


def plan(*behind, **more):
    snapshot = cloud(
        more.pop('hosts', HOSTS),
        [BIG, *behind],
        running=RUNNING,
        lifetimes=LIFETIMES,
        **{
            name: more.pop(name) for name in ('used', 'limits') if name in more
        },
    )
    return planner.plan(snapshot, 100.0, backfill=planner.Backfill(**more))


def test_the_first_request_gets_a_reservation_for_its_expected_start():
    found = plan()
    assert found.waiting['big'].reserved == cluster.Reservation(('a',), 150.0)


def test_a_reservation_by_a_known_end_needs_no_lifetimes():
    runs_out = dataclasses.replace(RUNNING[0], ends_at=130.0)
    snapshot = cloud(HOSTS, [BIG], running=(runs_out, RUNNING[1]))
    reserved = planner.plan(snapshot, 100.0).waiting['big'].reserved
    assert reserved == cluster.Reservation(('a',), 130.0)


def test_a_request_that_ends_in_time_starts_on_reserved_room():
    found = plan(ask('short', 1, at=95.0), ask('long', 2, at=96.0))
    assert started(found) == {'short': ('a',)}
    why = found.waiting['long'].why
    assert why.reason is R.NO_ROOM
    found = plan(ask('long', 2, at=96.0))
    assert found.waiting['long'].why.reason is R.BEHIND_OTHERS


def test_a_request_beside_the_reserved_room_may_run_longer():
    hosts = [host('a', vcpu=9, used=6), host('b', used=8)]
    one, two = ask('one', 1, 'q', at=95.0), ask('two', 1, 'q', at=96.0)
    found = plan(one, two, hosts=hosts)
    # Nothing is known of q: it may take the ninth VCPU, not the eighth.
    assert started(found) == {'one': ('a',)}
    assert found.waiting['two'].why.reason is R.BEHIND_OTHERS


def test_a_request_that_waited_for_long_has_the_closest_host_alone():
    found = plan(ask('short', 1, at=95.0), patience_s=10.0)
    assert found.waiting['big'].reserved == cluster.Reservation(('a',))
    assert started(found) == {}
    assert started(plan(ask('short', 1, at=95.0), patience_s=10.5))


def test_without_known_ends_the_closest_host_is_kept():
    snapshot = cloud(HOSTS, [BIG, ask('short', 1, at=95.0)], running=RUNNING)
    found = planner.plan(snapshot, 100.0)
    assert found.waiting['big'].reserved == cluster.Reservation(('a',))
    assert started(found) == {}


def test_backfill_tries_a_bounded_number_of_requests():
    behind = [ask(f'{n}', 5, at=95.0 + n) for n in range(3)]
    found = plan(*behind, ask('short', 1, at=99.0), depth=3)
    assert started(found) == {}
    why = found.waiting['short'].why
    assert why == reason.why(R.BEYOND_DEPTH, before=4, depth=3)
    assert started(plan(*behind, ask('short', 1, at=99.0), depth=4))


def test_backfill_of_depth_zero_tries_no_request():
    assert started(plan(ask('short', 1, at=99.0), depth=0)) == {}


def test_the_shared_part_is_reserved_until_it_is_returned():
    # Room there is; of the shared eight q has six, until 150.
    hosts = [host('a', vcpu=8), host('b', vcpu=8)]
    there = {
        'hosts': hosts,
        'limits': {'g': small_cloud.guaranteed(8)},
        'used': {'p': np.array([6, 0])},
    }
    found = plan(ask('short', 1, at=95.0), **there)
    assert found.waiting['big'].why.reason is R.SHARED_PART_TAKEN
    assert found.waiting['big'].reserved.at == 150.0
    assert list(started(found)) == ['short']
    found = plan(ask('long', 1, 'q', at=95.0), **there)
    assert started(found) == {}
    assert found.waiting['long'].why.reason is R.BEHIND_OTHERS


@dataclasses.dataclass
class Simulation:
    """Requests come, start in the order of asking, and end.

    :ivar lasts: seconds that servers of a project really last.
    :ivar learned: seconds that others like them lasted.
    """

    hosts: list
    coming: list
    lasts: dict
    learned: dict
    backfill: planner.Backfill

    def __post_init__(self):
        self.now = 0.0
        self.waiting = {}
        self.running = []
        self.began = {}
        self.promised = collections.defaultdict(list)

    def run(self, until):
        coming = collections.deque(
            sorted(self.coming, key=lambda each: each.asked_at)
        )
        while self.now < until and (coming or self.waiting):
            while coming and coming[0].asked_at <= self.now:
                each = coming.popleft()
                self.waiting[each.uuid] = each
            self.step()
            moments = [at for at, _ in self.running]
            moments += [coming[0].asked_at] if coming else []
            if not moments:
                break
            self.now = min(moments)
            self.running = [
                each for each in self.running if each[0] > self.now
            ]

    def step(self):
        snapshot = self.snapshot()
        plan = planner.plan(snapshot, self.now, backfill=self.backfill)
        for uuid, place in plan.waiting.items():
            if place.reserved and place.reserved.at is not None:
                self.promised[uuid].append(place.reserved.at)
        later = small_cloud.cloud_after_plan(snapshot, plan, self.now)
        inventory = later.inventory
        assert (inventory.used <= inventory.capacity).all()
        for action in plan.actions:
            asked = self.waiting.pop(action.request)
            self.began[asked.uuid] = self.now
            end = self.now + self.lasts[asked.project]
            vcpu = dict(asked.demand.amounts)['VCPU']
            one = runs('', vcpu, self.now, asked.project)
            limit = asked.ends_at(self.now)
            self.running += [
                (end, dataclasses.replace(one, host=name, ends_at=limit))
                for name in action.hosts
            ]

    def snapshot(self):
        used = collections.Counter()
        projects = {}
        for _, each in self.running:
            vcpu = dict(each.amounts)['VCPU']
            used[each.host] += vcpu
            one = np.array([vcpu, 100])
            projects[each.project] = projects.get(each.project, 0) + one
        hosts = [
            host(name, vcpu=vcpu, memory=100_000, used=used[name])
            for name, vcpu in self.hosts
        ]
        lifetimes = {}
        for project, seconds in self.learned.items():
            for vcpu in range(1, 9):
                [kind] = last(0, vcpu, project)
                lifetimes[kind] = seconds
        return cloud(
            hosts,
            list(self.waiting.values()),
            used=projects,
            running=tuple(each for _, each in self.running),
            lifetimes=lifetimes,
        )


@st.composite
def streams(draw):
    size = draw(st.integers(1, 3))
    hosts = [(f'h{n}', draw(st.integers(4, 8))) for n in range(size)]
    largest = min(vcpu for _, vcpu in hosts)
    coming = [
        ask(
            f'r{n:02}',
            draw(st.integers(1, largest)),
            draw(st.sampled_from('pqr')),
            at=float(draw(st.integers(0, 20))),
        )
        for n in range(draw(st.integers(1, 14)))
    ]
    lasts = {name: float(draw(st.integers(1, 30))) for name in 'pqr'}
    return hosts, coming, lasts


@hypothesis.settings(deadline=None)
@hypothesis.given(streams(), st.sets(st.sampled_from('pqr')))
def test_no_request_delays_a_reservation(stream, known):
    hosts, coming, lasts = stream
    learned = {name: (lasts[name],) * 5 for name in known}
    made = Simulation(hosts, coming, lasts, learned, planner.Backfill())
    made.run(until=10_000.0)
    assert made.began.keys() == {each.uuid for each in coming}
    for uuid, promised in made.promised.items():
        assert made.began[uuid] <= promised[0]
        assert promised == sorted(promised, reverse=True)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(
    st.integers(1, 2),
    st.integers(2, 6),
    st.integers(1, 8),
    st.integers(0, 20),
    st.randoms(use_true_random=False),
)
def test_a_large_request_starts_despite_wrong_lifetimes(
    size, vcpu, truly_s, patience_s, chance: random.Random
):
    # Small ones come for ever. Nine of ten claim to end at once, so that
    # who did not is expected to stay for long, and others to end before.
    hosts = [(f'h{n}', vcpu) for n in range(size)]
    coming = [
        ask(f's{n:03}', chance.randint(1, max(vcpu // 2, 1)), 'q', at=n / 2)
        for n in range(160)
    ]
    large = ask('large', vcpu, 'p', at=0.1)
    made = Simulation(
        hosts,
        [*coming, large],
        {'q': float(truly_s), 'p': 5.0},
        {'q': (0.25,) * 9 + (1000.0,), 'p': (5.0,) * 5},
        planner.Backfill(20, float(patience_s)),
    )
    bound_s = patience_s + truly_s * vcpu
    made.run(until=bound_s + 1)
    assert made.began['large'] - large.asked_at <= bound_s


def known(name, vcpu, ends_at, project='p', **more):
    amounts = small_cloud.demand(vcpu).amounts
    return cluster.Running(
        name, project, amounts, 0.0, ends_at=ends_at, **more
    )


def test_a_known_end_is_waited_for_at_any_patience():
    # The other host comes closest, and is expected to be free before.
    hosts = [host('a', used=8), host('b', used=4)]
    snapshot = cloud(
        hosts,
        [ask('big', 8, at=0.0), ask('short', 4, 'q', at=1.0)],
        running=(known('a', 8, 5000.0), known('b', 4, None)),
        lifetimes=last(4000, 4),
    )
    for patience_s, now in itertools.product(
        (0.0, 60.0, 3600.0), (10.0, 3599.0, 3601.0, 4999.0)
    ):
        backfill = planner.Backfill(patience_s=patience_s)
        plan = planner.plan(snapshot, now, backfill=backfill)
        reserved = plan.waiting['big'].reserved
        assert reserved == cluster.Reservation(('a',), 5000.0)
        assert started(plan) == {'short': ('b',)}


def test_a_guessed_end_is_not_taken_before_a_known_end():
    hosts = [host('a', used=7), host('b', used=8)]
    snapshot = cloud(
        hosts,
        [
            ask('big', 8, at=0.0),
            ask('guessed', 1, 'q', at=1.0),
            ask('sure', 1, 'q', at=2.0, time_limit_s=90.0),
        ],
        running=(known('a', 7, 200.0), known('b', 8, None)),
        lifetimes=last(10, 1, 'q'),
    )
    plan = planner.plan(snapshot, 100.0)
    assert plan.waiting['big'].reserved == cluster.Reservation(('a',), 200.0)
    assert started(plan) == {'sure': ('a',)}


FAR = 100 * 3600.0


def test_an_expected_end_long_before_a_far_known_end_counts_too():
    hosts = [host('a', used=8), host('b', used=5)]
    there = {
        'running': (known('a', 8, FAR), known('b', 5, None, 'q')),
        'lifetimes': last(7000, 5, 'q') | last(30, 1),
    }
    asked = [
        ask('big', 8, at=0.0),
        ask('short', 1, at=1.0),
        ask('limited', 1, 'r', at=2.0, time_limit_s=3600.0),
        ask('long', 1, 'r', at=3.0),
    ]
    plan = planner.plan(cloud(hosts, asked, **there), 100.0)
    # It is told what is known; hosts of both are kept.
    reserved = plan.waiting['big'].reserved
    assert reserved == cluster.Reservation(('a', 'b'), FAR)
    assert started(plan).keys() == {'short', 'limited'}
    assert plan.waiting['long'].why.reason is R.BEHIND_OTHERS
    # After long, what was expected has its host for itself.
    plan = planner.plan(cloud(hosts, asked, **there), 3700.0)
    assert plan.waiting['big'].reserved == cluster.Reservation(('a', 'b'), FAR)
    assert started(plan) == {}


def test_hosts_are_kept_that_known_ends_leave_least_on():
    # On b six stay for ever, on a four: what ends is known.
    hosts = [host('a', used=8), host('b', used=6)]
    snapshot = cloud(
        hosts,
        [ask('big', 8, at=0.0)],
        running=(
            known('a', 4, 50.0),
            known('a', 4, None),
            known('b', 6, None),
        ),
    )
    plan = planner.plan(snapshot, 10.0)
    assert plan.waiting['big'].reserved == cluster.Reservation(('a',))


def test_a_server_that_is_long_overdue_is_not_known_to_end():
    hosts = [host('a', used=8), host('b', used=8)]
    snapshot = cloud(
        hosts,
        [ask('big', 8, at=0.0)],
        running=(known('a', 8, 10.0), known('b', 8, 9000.0)),
    )
    plan = planner.plan(snapshot, 20.0)
    assert plan.waiting['big'].reserved == cluster.Reservation(('a',), 20.0)
    plan = planner.plan(snapshot, 5000.0)
    assert plan.waiting['big'].reserved == cluster.Reservation(('b',), 9000.0)


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(streams(), st.sampled_from([0.0, 5.0, 3600.0]))
def test_no_request_delays_one_with_known_ends_at_any_patience(
    stream, patience_s
):
    hosts, coming, lasts = stream
    limited = [
        dataclasses.replace(each, time_limit_s=lasts[each.project])
        for each in coming
    ]
    backfill = planner.Backfill(patience_s=patience_s)
    made = Simulation(hosts, limited, lasts, {}, backfill)
    made.run(until=10_000.0)
    assert made.began.keys() == {each.uuid for each in coming}
    for uuid, promised in made.promised.items():
        assert made.began[uuid] <= promised[0]
        assert promised == sorted(promised, reverse=True)
