# SPDX-License-Identifier: Apache-2.0

"""What is used again for a while."""

import threading

import pytest

from api_ext import answer_cache


class FakeClock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def counting():
    made = []

    def make():
        made.append(len(made))
        return made[-1]

    return make


def test_a_cached_value_is_reused_until_it_expires():
    clock = FakeClock()
    value = answer_cache.CachedValue(2.0, clock)
    make = counting()
    assert [value.get(make), value.get(make)] == [0, 0]
    clock.now_s += 1.9
    assert value.get(make) == 0
    clock.now_s += 0.1
    assert value.get(make) == 1


def test_a_fresh_value_is_computed_on_request():
    value = answer_cache.CachedValue(2.0, FakeClock())
    make = counting()
    assert [value.get(make), value.get(make, fresh=True)] == [0, 1]


def test_a_cache_time_of_zero_caches_nothing():
    value = answer_cache.CachedValue(0.0, FakeClock())
    make = counting()
    assert [value.get(make), value.get(make)] == [0, 1]


def test_an_error_is_raised_and_not_cached():
    value = answer_cache.CachedValue(1000.0, FakeClock())

    def fail():
        raise ValueError('no')

    with pytest.raises(ValueError, match='no'):
        value.get(fail)
    assert value.get(counting()) == 0


def test_concurrent_callers_wait_for_the_same_value():
    value = answer_cache.CachedValue(1000.0, FakeClock())
    begun, go_on = threading.Event(), threading.Event()
    make = counting()

    def slow():
        begun.set()
        go_on.wait()
        return make()

    got = []
    first = threading.Thread(target=lambda: got.append(value.get(slow)))
    first.start()
    begun.wait()
    others = [
        threading.Thread(target=lambda: got.append(value.get(slow)))
        for _ in range(5)
    ]
    for thread in others:
        thread.start()
    go_on.set()
    for thread in [first, *others]:
        thread.join()
    assert got == [0] * 6
