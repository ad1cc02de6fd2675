# SPDX-License-Identifier: Apache-2.0

"""A peer gets what it may send, and nobody else pays for what it sends."""

import pytest

from oslo_messaging_zmq.rpc import limiter


class FakeClock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return FakeClock()


def admitted(made, peer, count, size=100):
    return sum(made.admits(peer, size) for _ in range(count))


def test_a_burst_is_taken_and_then_the_rate(clock):
    made = limiter.Limiter(5.0, clock)
    assert admitted(made, 'n1', 1000) == 50
    clock.now_s += 1.0
    assert admitted(made, 'n1', 1000) == 5
    clock.now_s += 1e6
    assert admitted(made, 'n1', 1000) == 50


def test_a_peer_that_keeps_to_the_rate_is_never_refused(clock):
    made = limiter.Limiter(5.0, clock)
    for _ in range(1000):
        assert made.admits('n1', 100)
        clock.now_s += 0.2


def test_one_peer_does_not_use_up_what_another_may_send(clock):
    made = limiter.Limiter(5.0, clock)
    admitted(made, 'n1', 1000)
    assert admitted(made, b'p1', 1000) == 50


def test_large_messages_count_more(clock):
    made = limiter.Limiter(1.0, clock)
    assert admitted(made, 'n1', 1000, size=5 * 64 * 1024) == 1
    assert admitted(made, 'n1', 1000) == 4


def test_one_message_above_all_bounds_is_taken_of_who_was_quiet(clock):
    made = limiter.Limiter(0.01, clock)
    assert admitted(made, 'n1', 3, size=8 * 2**20) == 1
    clock.now_s += 100.0
    assert admitted(made, 'n1', 3, size=8 * 2**20) == 1


def test_no_rate_means_no_bound(clock):
    made = limiter.Limiter(0.0, clock)
    assert admitted(made, 'n1', 1000) == 1000
    assert len(made) == 0


def test_many_names_do_not_fill_the_memory(clock):
    made = limiter.Limiter(1.0, clock)
    admitted(made, 'n1', 10)
    for number in range(10_000):
        made.admits(f'invented {number}', 1)
    assert len(made) == 10_000
    assert made.admits('n1', 1)
