# SPDX-License-Identifier: Apache-2.0

"""Past requests, replayed with other shares and orders."""

import dataclasses

import pytest

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import orders
from nova_fairness.planners.fairqueue import replay
from tests.fixtures import small_cloud

FAIR, FIFO = orders.FairTree(), order.OldestFirst()


def kept(elapsed_s):
    return 0.5 ** (elapsed_s / 1000.0)


def past(name, project, asked_at, sent_at, vcpu=1, lasted_s=1000.0, **more):
    asked = small_cloud.waiting_request(name, vcpu, project, asked_at, **more)
    return replay.PastRequest(asked, sent_at, lasted_s)


def waits(found, made=FAIR, **shares):
    accounts = tuple(cluster.Account(n, share=s) for n, s in shares.items())
    snapshot = dataclasses.replace(
        small_cloud.cloud([small_cloud.host('h1', vcpu=10)]),
        accounts=accounts,
    )
    steps = replay.replay_waits(found, snapshot, made, kept)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


QUEUE = [
    past('p1', 'p', 0.0, 10.0),
    past('p2', 'p', 0.0, 20.0),
    past('p3', 'p', 0.0, 30.0),
    past('q1', 'q', 0.0, 40.0),
    past('q2', 'q', 0.0, 50.0),
]


def test_a_replay_in_the_old_order_gives_the_old_waits():
    assert waits(QUEUE, FIFO) == {
        'p1': 10.0, 'p2': 20.0, 'p3': 30.0, 'q1': 40.0, 'q2': 50.0
    }  # fmt: skip


def test_projects_take_turns_by_their_shares():
    found = waits(QUEUE, p=1.0, q=1.0)
    assert {found['p1'], found['q1']} == {10.0, 20.0}
    assert {found['p2'], found['q2']} == {30.0, 40.0}
    assert found['p3'] == 50.0


def test_a_larger_share_shortens_the_waits_of_its_project():
    few, many = waits(QUEUE, p=1.0, q=1.0), waits(QUEUE, p=100.0, q=1.0)
    own = ('p1', 'p2', 'p3')
    assert sum(many[each] for each in own) < sum(few[each] for each in own)
    assert sum(many.values()) == pytest.approx(sum(few.values()))


def test_a_request_does_not_start_before_it_was_asked_for():
    late = [*QUEUE[:3], past('q1', 'q', 35.0, 40.0)]
    assert waits(late, p=1.0, q=1.0)['q1'] == 5.0


def test_a_large_request_keeps_the_room_that_it_waits_for():
    found = [
        past('q1', 'q', 0.0, 30.0, vcpu=2),
        past('p1', 'p', 5.0, 10.0),
        past('p2', 'p', 5.0, 20.0),
    ]
    # It is the oldest: two small slots are its room.
    assert waits(found, FIFO) == {'q1': 20.0, 'p1': 25.0, 'p2': 25.0}


def test_every_priority_class_has_the_room_of_its_own():
    band = request.Band.PREEMPTIBLE
    found = [
        past('p1', 'p', 0.0, 100.0),
        past('q1', 'q', 0.0, 10.0, band=band),
    ]
    assert waits(found, FIFO) == {'p1': 100.0, 'q1': 10.0}


def test_use_decays_in_a_replay():
    found = [
        past('p1', 'p', 0.0, 0.0, lasted_s=1e5),
        past('q1', 'q', 20000.0, 20000.0, lasted_s=500.0),
        past('p2', 'p', 20001.0, 20010.0),
        past('q2', 'q', 20001.0, 20020.0),
    ]
    # Long ago p used more, and lately q did.
    told = waits(found, p=1.0, q=1.0)
    assert (told['p2'], told['q2']) == (9.0, 19.0)


def test_a_replay_without_requests_is_empty():
    assert waits([]) == {}
