# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.shares import ledger as ledger_module

WEEK = 7 * 86400.0
CLOUD = np.array([100.0])


def tenth(account='a'):
    return {account: np.array([10.0])}


def test_a_steady_use_of_a_tenth_is_recorded_as_a_tenth():
    ledger = ledger_module.UseLedger(3600, 0)
    for now in range(300, 100 * 3600, 300):
        ledger = ledger.advanced(now, tenth(), CLOUD)
    assert ledger.use['a'] == pytest.approx([0.1])


def test_after_a_half_life_half_is_left():
    ledger = ledger_module.UseLedger(3600, 0, {'a': np.array([0.4])})
    assert ledger.advanced(3600, {}, CLOUD).use['a'] == pytest.approx([0.2])


@pytest.mark.parametrize('steps', [1, 7, 1000])
def test_the_length_of_the_steps_changes_nothing(steps):
    ledger = ledger_module.UseLedger(WEEK, 0)
    for step in range(1, steps + 1):
        ledger = ledger.advanced(WEEK * step / steps, tenth(), CLOUD)
    assert ledger.use['a'] == pytest.approx([0.05])


def test_the_constant_of_kueue_for_a_week_and_five_minutes():
    kept = ledger_module.UseLedger(168 * 3600, 0).kept(300)
    assert 1 - kept == pytest.approx(0.000344, rel=1e-2)


def test_a_clock_that_goes_back_counts_no_time_twice():
    ledger = ledger_module.UseLedger(3600, 0).advanced(600, tenth(), CLOUD)
    back = ledger.advanced(100, tenth(), CLOUD)
    again = back.advanced(600, tenth(), CLOUD)
    assert again.use['a'] == ledger.use['a']
    assert again.at == 600


def test_the_smallest_use_accumulates():
    ledger = ledger_module.UseLedger(WEEK, 0)
    for now in range(1, 2001):
        ledger = ledger.advanced(
            now * 0.001, {'a': np.array([1e-6])}, np.array([1e6])
        )
    assert 0 < ledger.use['a'][0] < 1e-12
    assert ledger.use['a'][0] == pytest.approx(
        1e-12 * (1 - 0.5 ** (2 / WEEK)), rel=1e-6
    )


def test_an_account_that_used_nothing_for_long_is_forgotten():
    ledger = ledger_module.UseLedger(1, 0, {'a': np.array([1.0])})
    assert ledger.advanced(10, {}, CLOUD).use
    assert not ledger.advanced(100, {}, CLOUD).use


def test_a_class_that_the_cloud_lost_counts_nothing():
    ledger = ledger_module.UseLedger(1, 0)
    after = ledger.advanced(1, tenth(), np.array([0.0]))
    assert after.use['a'] == [0]


@pytest.mark.parametrize('half_life', [0, -1, float('nan'), float('inf')])
def test_an_invalid_half_life_is_refused(half_life):
    with pytest.raises(exception.BadLedger, match='half-life must be'):
        ledger_module.UseLedger(half_life, 0)


@pytest.mark.parametrize('amount', [-1.0, float('nan'), float('inf')])
def test_invalid_use_is_refused_and_not_counted(amount):
    ledger = ledger_module.UseLedger(1, 0)
    with pytest.raises(exception.BadLedger, match="of account 'b' must be"):
        ledger.advanced(1, {**tenth(), 'b': np.array([amount])}, CLOUD)


RECORDS = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 50),
        strategies.integers(0, 20),
        strategies.integers(0, 100),
    ),
    max_size=5,
)


def by_definition(records, now, half_life_s):
    """Each record counts by what is left of it: the sum of its steps."""
    empty = ledger_module.UseLedger(half_life_s, now)
    use = {}
    for each in records:
        start, end = min(each.start, now), min(each.end, now)
        weight = empty.kept(now - end) - empty.kept(now - start)
        use[each.account] = use.get(each.account, 0) + weight * each.part
    return dataclasses.replace(empty, use=use)


@given(RECORDS)
def test_records_give_the_result_of_the_steps(spans):
    records = [
        ledger_module.UseRecord('a', start, start + long, np.array([n / 100]))
        for start, long, n in spans
    ]
    stepped = ledger_module.UseLedger(13, 0)
    for now in range(1, 81):
        use = sum(
            (
                each.part * 100
                for each in records
                if each.start < now <= each.end
            ),
            start=np.zeros(1),
        )
        stepped = stepped.advanced(now, {'a': use}, CLOUD)
    again = by_definition(records, 80, 13)
    none = np.zeros(1)
    assert again.use.get('a', none) == pytest.approx(
        stepped.use.get('a', none), abs=1e-9
    )


def test_periods_of_synergy_count_half_of_the_one_after():
    day = 86400.0
    records = [
        ledger_module.UseRecord('a', 0, 7 * day, np.ones(1)),
        ledger_module.UseRecord('b', 14 * day, 21 * day, np.ones(1)),
        ledger_module.UseRecord('c', -7 * day, 0, np.ones(1)),
    ]
    use = ledger_module.use_in_periods(records, 21 * day, 7 * day, 3, 0.5)
    assert use['b'] == [7 * day]
    assert use['a'] == [7 * day / 4]
    assert use['c'] == [0]


def test_a_record_that_ends_before_it_begins_is_refused():
    record = ledger_module.UseRecord('a', 2, 1, np.ones(1))
    with pytest.raises(exception.BadLedger, match="account 'a' must not end"):
        ledger_module.use_in_periods([record], 3, 1, 3, 0.5)


def test_periods_of_no_length_are_refused():
    with pytest.raises(exception.BadLedger, match='length above 0'):
        ledger_module.use_in_periods([], 0, 0, 3, 0.5)


part = strategies.floats(0, 1)
steps = strategies.lists(
    strategies.tuples(
        strategies.floats(60, 7200),
        strategies.dictionaries(strategies.sampled_from('abc'), part),
    ),
    min_size=1,
    max_size=12,
)


@given(steps, strategies.dictionaries(strategies.sampled_from('abd'), part))
def test_a_ledger_rebuilt_from_charges_is_the_same(taken, opening):
    before = {name: np.array([use]) for name, use in opening.items()}
    ledger = ledger_module.UseLedger(WEEK, 100.0, before)
    charges, records = [], []
    for seconds, parts in taken:
        begins, ends = ledger.at, ledger.at + seconds
        current = {name: np.array([100 * use]) for name, use in parts.items()}
        charges.append(
            ledger_module.PeriodCharge(begins, ends, current, CLOUD, before)
        )
        records += [
            ledger_module.UseRecord(name, begins, ends, each / CLOUD)
            for name, each in current.items()
        ]
        ledger = ledger.advanced(ends, current, CLOUD)
    again = ledger_module.replay(charges, WEEK)
    assert again.at == ledger.at
    assert again.use == ledger.use
    # Each charge by its definition, and what fades of the opening.
    closed = by_definition(records, ledger.at, WEEK)
    fades = ledger.kept(ledger.at - 100.0)
    none = np.array([0.0])
    for name in 'abcd':
        expected = closed.use.get(name, none) + fades * before.get(name, none)
        assert again.use.get(name, none) == pytest.approx(expected, abs=1e-9)


def test_unchanged_use_extends_the_last_record():
    def charge(begins, ends, much, cloud=100.0):
        amounts = {} if much is None else {'a': np.array([much])}
        return ledger_module.PeriodCharge(
            begins, ends, amounts, np.array([cloud])
        )

    found = ledger_module.charge_runs(
        [
            charge(0, 1, 10.0),
            charge(1, 2, 10.0),
            charge(2, 3, 10.0, 50.0),
            charge(4, 5, 10.0, 50.0),
            charge(5, 6, None),
            charge(6, 7, 10.0, 50.0),
        ]
    )
    assert [(run.begins, run.ends, run.parts[0]) for run in found] == [
        (0, 2, 0.1),
        (2, 3, 0.2),
        (4, 5, 0.2),
        (6, 7, 0.2),
    ]
