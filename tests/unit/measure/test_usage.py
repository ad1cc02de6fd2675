# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.measure import usage
from nova_fairness.model import resources
from tests.unit.measure import build

A = build.vm('a')
B = build.vm('b')
CPU = resources.RESOURCES.index('cpu_time')
READ = resources.RESOURCES.index('disk_read')
MEMORY = resources.RESOURCES.index('memory')


def between(before, after, speed=1.0, past=None, decay=0.5):
    return usage.usage_between(before, after, speed, past, decay)


def usage_after_readings(resource, *totals, decay=0.5, step=10.0):
    """Usage of one VM after each reading of one resource."""
    past, result = None, []
    readings = [
        build.reading(step * index, [(A, {resource: total})])
        for index, total in enumerate(totals)
    ]
    for before, after in itertools.pairwise(readings):
        past = between(before, after, past=past, decay=decay)
        column = resources.RESOURCES.index(resource)
        result.append(past.amounts[0, column])
    return result


def test_usage_is_the_difference_of_the_counters():
    got = between(
        build.reading(100.0, [(A, {'cpu_time': 4, 'net_sent': 50})]),
        build.reading(110.0, [(A, {'cpu_time': 9, 'net_sent': 80})]),
    )
    expected = resources.RESOURCES.vector(cpu_time=5, net_sent=30)
    np.testing.assert_array_equal(got.amounts, [expected])
    assert got.interval_s == 10
    assert got.known.tolist() == [True]


def test_cpu_time_is_weighted_by_the_speed_of_the_node():
    got = between(
        build.reading(0.0, [(A, {'cpu_time': 1, 'disk_read': 1})]),
        build.reading(10.0, [(A, {'cpu_time': 3, 'disk_read': 4})]),
        speed=5999.0,
    )
    assert got.amounts[0, CPU] == 2 * 5999
    assert got.amounts[0, READ] == 3


def test_memory_is_the_present_value():
    assert usage_after_readings('memory', 500, 700, 300) == [700, 300]


def test_first_interval_is_taken_whole_and_later_ones_are_smoothed():
    assert usage_after_readings('disk_read', 0, 80, 80, 80) == [80, 40, 20]


def test_use_of_a_vm_begins_again_after_a_pause():
    still = dataclasses.replace(A, paused=True)
    past, found = None, []
    readings = [
        build.reading(10.0 * number, [(vm, {'disk_read': total})])
        for number, (vm, total) in enumerate(
            [(still, 0), (still, 2), (still, 4), (A, 64), (A, 164)]
        )
    ]
    for before, after in itertools.pairwise(readings):
        past = between(before, after, past=past)
        found.append(past.amounts[0, READ])
    assert found == [2, 2, 60, 80]


@pytest.mark.parametrize(
    ('decay', 'expected'),
    [(1.0, [80, 40]), (0.5, [80, 60]), (0.25, [80, 70])],
)
def test_decay_factor_is_the_weight_of_the_new_interval(decay, expected):
    assert (
        usage_after_readings('disk_read', 0, 80, 120, decay=decay) == expected
    )


def test_rounds_of_different_length_are_smoothed_as_rates():
    first = between(
        build.reading(0.0, [(A, {'disk_read': 0})]),
        build.reading(10.0, [(A, {'disk_read': 100})]),
    )
    got = between(
        build.reading(10.0, [(A, {'disk_read': 100})]),
        build.reading(11.0, [(A, {'disk_read': 110})]),
        past=first,
    )
    assert got.amounts[0, READ] == pytest.approx(10)


@pytest.mark.parametrize(
    ('totals', 'expected'),
    [
        pytest.param([100, 7], [0], id='backwards at first'),
        pytest.param([0, 80, 7, 27], [80, 40, 30], id='backwards later'),
        pytest.param([0, 80, build.NAN], [80, 40], id='unreadable'),
        pytest.param([build.NAN, 80], [0], id='unreadable before'),
        pytest.param([0, float('inf')], [0], id='absurd'),
    ],
)
def test_counter_that_tells_nothing_leaves_the_decayed_past(totals, expected):
    assert usage_after_readings('disk_read', *totals) == expected


def test_memory_that_cannot_be_read_stays_as_it_was():
    assert usage_after_readings('memory', 500, 700, build.NAN) == [700, 700]


def test_smoothing_goes_on_after_a_round_in_which_nothing_was_read():
    nothing = dict.fromkeys(resources.RESOURCES.names, build.NAN)
    readings = [
        build.reading(0.0, [(A, {'disk_read': 0})]),
        build.reading(10.0, [(A, {'disk_read': 80})]),
        build.reading(20.0, [(A, nothing)]),
        build.reading(30.0, [(A, {'disk_read': 80})]),
        build.reading(40.0, [(A, {'disk_read': 80})]),
    ]
    past, amounts, known = None, [], []
    for before, after in itertools.pairwise(readings):
        past = between(before, after, past=past)
        amounts.append(past.amounts[0, READ])
        known.append(bool(past.known[0]))
    assert amounts == [80, 40, 20, 10]
    assert known == [True, False, False, True]


def test_vm_seen_for_the_first_time_is_unknown():
    got = between(
        build.reading(0.0, [(A, {'cpu_time': 1})]),
        build.reading(
            10.0, [(A, {'cpu_time': 2}), (B, {'cpu_time': 9, 'memory': 5})]
        ),
    )
    assert got.known.tolist() == [True, False]
    assert not got.amounts[1].any()
    assert np.isnan(got.cpu_stall[1])


def test_new_incarnation_of_a_vm_inherits_nothing():
    again = build.vm('a', pid=2)
    first = between(
        build.reading(0.0, [(A, {'disk_read': 0})]),
        build.reading(10.0, [(A, {'disk_read': 80})]),
    )
    got = between(
        build.reading(10.0, [(A, {'disk_read': 80})]),
        build.reading(20.0, [(again, {'disk_read': 900})]),
        past=first,
    )
    assert got.known.tolist() == [False]
    assert not got.amounts.any()


def test_rows_follow_the_later_reading_after_any_order():
    got = between(
        build.reading(0.0, [(B, {'disk_read': 5}), (A, {'disk_read': 1})]),
        build.reading(10.0, [(A, {'disk_read': 2}), (B, {'disk_read': 9})]),
    )
    assert got.incarnations == (A, B)
    assert got.amounts[:, READ].tolist() == [1, 4]


def test_vanished_vm_leaves_no_row():
    got = between(
        build.reading(0.0, [(A, {}), (B, {'disk_read': 5})]),
        build.reading(10.0, [(B, {'disk_read': 9})]),
    )
    assert got.incarnations == (B,)
    assert got.amounts[:, READ].tolist() == [4]


def test_vm_read_late_is_scaled_to_the_common_interval():
    got = between(
        build.reading(0.0, [(A, {'disk_read': 0})], read_at=[0.0]),
        build.reading(10.0, [(A, {'disk_read': 110})], read_at=[11.0]),
    )
    assert got.amounts[0, READ] == pytest.approx(100)


def test_vm_whose_two_reads_are_one_moment_is_unknown():
    got = between(
        build.reading(0.0, [(A, {'disk_read': 0})], read_at=[5.0]),
        build.reading(10.0, [(A, {'disk_read': 9})], read_at=[5.0]),
    )
    assert got.known.tolist() == [False]
    assert not got.amounts.any()


def test_absurd_cpu_time_is_capped_at_the_plausible():
    two = build.vm('two', vcpus=2)
    got = between(
        build.reading(0.0, [(two, {'cpu_time': 0})]),
        build.reading(10.0, [(two, {'cpu_time': 1e9})]),
        speed=3.0,
    )
    assert got.amounts[0, CPU] == 2 * 10 * 3 * 1.25


@pytest.mark.parametrize(
    ('before', 'after', 'expected'),
    [
        pytest.param(1.0, 3.5, 0.25, id='a quarter'),
        pytest.param(1.0, 1.0, 0.0, id='none'),
        pytest.param(0.0, 99.0, 1.0, id='clipped'),
        pytest.param(build.NAN, 3.0, build.NAN, id='kernel tells nothing'),
        pytest.param(5.0, 1.0, build.NAN, id='reset tells nothing'),
    ],
)
def test_stall_is_a_part_of_the_interval(before, after, expected):
    got = between(
        build.reading(0.0, [(A, {})], stall=[before]),
        build.reading(10.0, [(A, {})], stall=[after]),
    )
    np.testing.assert_array_equal(got.cpu_stall, [expected])


def test_node_without_vms_has_usage_without_rows():
    got = between(build.reading(0.0, []), build.reading(10.0, []))
    assert got.amounts.shape == (0, len(resources.RESOURCES))
    assert len(got.known) == len(got.cpu_stall) == 0


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ({'speed': 0.0}, 'speed_factor must be > 0, got 0.0'),
        ({'decay': 0.0}, 'decay_factor must be > 0 and <= 1, got 0.0'),
        ({'decay': 1.5}, 'decay_factor must be > 0 and <= 1, got 1.5'),
    ],
)
def test_factor_out_of_range_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        between(build.reading(0.0, []), build.reading(1.0, []), **wrong)


def test_interval_must_not_be_empty():
    with pytest.raises(ValueError, match='the interval is 0'):
        between(build.reading(1.0, []), build.reading(1.0, []))


@hypothesis.given(
    strategies.lists(
        strategies.one_of(
            strategies.just(build.NAN), strategies.floats(0, 1e15)
        ),
        min_size=2,
        max_size=8,
    )
)
def test_no_history_of_a_counter_gives_negative_or_huge_usage(totals):
    finite = [total for total in totals if np.isfinite(total)]
    ceiling = max(finite, default=0.0)
    for amount in usage_after_readings('net_received', *totals):
        assert 0 <= amount <= ceiling


def test_busy_parts_are_of_the_cpus_known_at_both_ends():
    before, after = (
        dataclasses.replace(build.reading(at, []), cpu_busy_s=np.array(busy))
        for at, busy in ((10.0, [5.0, 7.0]), (20.0, [10.0, 18.0, 3.0]))
    )
    told = usage.usage_between(before, after, 1.0, None, 0.5).cpu_busy
    assert told.tolist() == [0.5, 1.0]


def test_use_of_a_vm_that_does_not_count_is_left_out():
    got = between(
        build.reading(0.0, [(A, {'cpu_time': 1}), (B, {'cpu_time': 1})]),
        build.reading(9.0, [(A, {'cpu_time': 4}), (B, {'cpu_time': 5})]),
    )
    assert usage.without_vms(got, frozenset()) is got
    counted = usage.without_vms(got, frozenset({A.key}))
    assert counted.amounts[:, CPU].tolist() == [0, 4]
    assert counted.newest[:, CPU].tolist() == [0, 4]
    assert counted.known.tolist() == [False, True]
    assert got.amounts[:, CPU].tolist() == [3, 4]
