# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import hypothesis
from hypothesis import strategies
import pytest

from nova_fairness.lab import maxmin

CLOSE = 1e-9

amounts = strategies.floats(0.0, 4.0)
weights = strategies.floats(0.1, 10.0)
vms = strategies.lists(
    strategies.tuples(strategies.sampled_from('xyz'), amounts),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ('capacity', 'demand', 'weight', 'expected'),
    [
        (1.0, {'a': 1, 'b': 1}, {'a': 1, 'b': 1}, {'a': 0.5, 'b': 0.5}),
        (1.0, {'a': 0.2, 'b': 9}, {'a': 1, 'b': 1}, {'a': 0.2, 'b': 0.8}),
        (1.0, {'a': 9, 'b': 9}, {'a': 3, 'b': 1}, {'a': 0.75, 'b': 0.25}),
        (1.0, {'a': 0.1, 'b': 0.2}, {'a': 1, 'b': 1}, {'a': 0.1, 'b': 0.2}),
        (0.0, {'a': 1.0}, {'a': 1}, {'a': 0.0}),
        (1.0, {}, {}, {}),
    ],
)
def test_water_is_filled(capacity, demand, weight, expected):
    got = maxmin.water_fill(capacity, demand, weight)
    assert got == pytest.approx(expected)


@hypothesis.given(
    strategies.floats(0.0, 8.0),
    strategies.lists(strategies.tuples(amounts, weights), min_size=1),
)
def test_filling_is_work_conserving_and_max_min_fair(capacity, wanted):
    demand = {str(place): item[0] for place, item in enumerate(wanted)}
    weight = {str(place): item[1] for place, item in enumerate(wanted)}
    got = maxmin.water_fill(capacity, demand, weight)
    whole = min(capacity, sum(demand.values()))
    assert sum(got.values()) == pytest.approx(whole, abs=CLOSE)
    level = max(got[name] / weight[name] for name in got)
    for name in got:
        assert 0 <= got[name] <= demand[name] + CLOSE
        if got[name] < demand[name] - CLOSE:
            assert got[name] / weight[name] == pytest.approx(level, abs=1e-6)


@hypothesis.given(strategies.floats(0.1, 4.0), vms)
def test_nobody_below_could_have_more(capacity, wanted):
    owner = {str(place): item[0] for place, item in enumerate(wanted)}
    demand = {str(place): item[1] for place, item in enumerate(wanted)}
    got = maxmin.allocate(capacity, demand, owner, {'x': 2.0})
    whole = min(capacity, sum(demand.values()))
    assert sum(got.values()) == pytest.approx(whole, abs=CLOSE)
    for hungry in got:
        assert got[hungry] <= demand[hungry] + CLOSE
        if got[hungry] >= demand[hungry] - CLOSE:
            continue
        mine = [vm for vm in got if owner[vm] == owner[hungry]]
        assert got[hungry] == pytest.approx(max(got[vm] for vm in mine))


def test_users_come_first_and_their_vms_second():
    owner = {'a1': 'a', 'a2': 'a', 'b1': 'b'}
    demand = dict.fromkeys(owner, 1.0)
    got = maxmin.allocate(1.0, demand, owner, {})
    assert got == pytest.approx({'a1': 0.25, 'a2': 0.25, 'b1': 0.5})


def test_what_a_user_leaves_goes_to_the_others():
    owner = {'a1': 'a', 'b1': 'b', 'b2': 'b'}
    demand = {'a1': 0.1, 'b1': 0.2, 'b2': 1.0}
    got = maxmin.allocate(1.0, demand, owner, {})
    assert got == pytest.approx({'a1': 0.1, 'b1': 0.2, 'b2': 0.7})


def one_against(count):
    owner = {'light': 'a', **{f'h{place}': 'b' for place in range(count)}}
    demand = dict.fromkeys(owner, 1.0)
    return demand, owner, {}, dict.fromkeys(owner, 1)


@pytest.mark.parametrize(
    ('count', 'ratio', 'expected'),
    [
        (30, 20.0, 20 / 50),
        (10, 20.0, 0.5),
        (30, 1.0, 1 / 31),
        (20, 20.0, 0.5),
    ],
)
def test_the_light_user_gets_what_the_bound_allows(count, ratio, expected):
    got = maxmin.bounded(1.0, *one_against(count), ratio)
    assert got['a'] == pytest.approx(expected)


@hypothesis.given(strategies.integers(1, 40), strategies.floats(1.0, 100.0))
def test_a_bounded_part_is_never_above_the_max_min_part(count, ratio):
    got = maxmin.bounded(1.0, *one_against(count), ratio)
    assert got['a'] <= 0.5 + CLOSE


def test_a_large_vm_needs_less_weight():
    demand, owner, weight, vcpus = one_against(30)
    vcpus['light'] = 2
    got = maxmin.bounded(1.0, demand, owner, weight, vcpus, 10.0)
    assert got['a'] == pytest.approx(20 / 50)
