# SPDX-License-Identifier: Apache-2.0

"""Who makes something fail is found, with bounded work."""

import math

import hypothesis
from hypothesis import strategies as st

from nova_fairness.cluster import culprits


def budget(tries=10_000):
    return culprits.SearchBudget(tries, lambda: 0.0, 1.0)


class Tried:
    """Fails on some sets of inputs, and on all that have these in them."""

    def __init__(self, *bad):
        self.bad = [set(each) for each in bad]
        self.work = []

    def __call__(self, some):
        self.work.append(len(some))
        return any(each <= set(some) for each in self.bad)


@hypothesis.given(
    st.integers(1, 60),
    st.lists(st.lists(st.integers(0, 59), min_size=1, max_size=3)),
)
def test_without_a_failing_input_no_input_is_blamed(count, bad):
    items = list(range(count))
    tried = Tried(*([n % count for n in each] for each in bad))
    if not tried(items):
        return
    found, unsure = culprits.find_culprits(items, tried, budget())
    assert not unsure
    assert not tried([each for each in items if each not in found])
    assert len(found) == len(set(found))


@hypothesis.given(
    st.integers(1, 200), st.sets(st.integers(0, 199), min_size=1)
)
def test_only_inputs_that_fail_alone_or_together_are_blamed(count, bad):
    bad = {each % count for each in bad}
    tried = Tried(*([each] for each in bad))
    found, unsure = culprits.find_culprits(list(range(count)), tried, budget())
    assert set(found) == bad
    assert unsure == []


def test_one_failing_input_of_many_is_found_with_few_tries():
    items = list(range(10_000))
    tried = Tried([7123])
    assert culprits.find_culprits(items, tried, budget()) == ([7123], [])
    assert len(tried.work) <= 2 * math.ceil(math.log2(10_000)) + 15
    assert sum(tried.work) <= 4 * len(items)


@hypothesis.given(st.integers(0, 40))
def test_bounded_work_leaves_more_out_but_blames_no_other(tries):
    items = list(range(64))
    tried = Tried([3], [40])
    found, unsure = culprits.find_culprits(items, tried, budget(tries))
    assert {3, 40} <= {*found, *unsure}
    assert set(found) <= {3, 40}
    assert len(tried.work) <= tries


def test_the_search_for_failing_inputs_stops_at_its_time_limit():
    tried = Tried([3])
    late = culprits.SearchBudget(100, lambda: 2.0, 1.0)
    assert culprits.find_culprits(list(range(8)), tried, late) == (
        [],
        list(range(8)),
    )
    assert tried.work == []
