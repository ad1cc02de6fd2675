# SPDX-License-Identifier: Apache-2.0

"""What failed is set aside, tried again, and forgotten once it works."""

import logging

import pytest

from nova_fairness.cluster import quarantine as module
from nova_fairness.model import reason

K = module.InputKind


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def table(clock):
    return module.Quarantine(clock)


def failed(table, name='r1', error=None, kind=K.REQUEST):
    table.put(kind, name, error or ValueError('secret of others'))


def test_a_repeated_failure_is_tried_ever_more_seldom(table, clock):
    pauses = []
    for _ in range(9):
        failed(table)
        pauses.append(table.entry(K.REQUEST, 'r1').pause_s)
        assert table.holds(K.REQUEST, 'r1')
        clock.now += pauses[-1]
        assert not table.holds(K.REQUEST, 'r1')
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_an_entry_that_fails_during_its_pause_is_not_held_longer(table, clock):
    failed(table)
    clock.now += 59
    failed(table)
    clock.now += 1
    assert not table.holds(K.REQUEST, 'r1')
    assert table.failures()['request'] == 2


def test_entries_of_different_kinds_have_separate_quarantines(table):
    failed(table)
    assert not table.holds(K.ACCOUNT, 'r1')
    assert table.names(K.REQUEST) == {'r1'}
    assert table.counts() == {
        **dict.fromkeys((each.value for each in K), 0), 'request': 1
    }  # fmt: skip


def test_an_entry_that_works_again_leaves_the_quarantine(table, clock):
    failed(table)
    table.release(K.REQUEST, 'r1')
    assert not table.holds(K.REQUEST, 'r1')
    failed(table)
    clock.now += 1000
    failed(table, 'r2')
    assert table.entry(K.REQUEST, 'r1') is None


def test_the_quarantine_table_is_bounded(table, clock, monkeypatch):
    monkeypatch.setattr(module, 'MOST', 3)
    for n in range(9):
        failed(table, f'r{n}')
        clock.now += 1
    assert table.names(K.REQUEST) == {'r6', 'r7', 'r8'}


def test_the_log_has_one_traceback_an_hour_and_owners_none(
    table, clock, caplog
):
    def put(name):
        try:
            {}['secret of others']
        except KeyError as error:
            failed(table, name, error)

    with caplog.at_level(logging.WARNING):
        for n in range(30):
            put(f'r{n % 10}')
            clock.now += 100
        assert caplog.text.count('Traceback') == 1
        clock.now += 3600
        put('r1')
    assert caplog.text.count('Traceback') == 2
    why = table.entry(K.REQUEST, 'r1').why
    assert why.reason is reason.Reason.QUARANTINED
    assert 'secret' not in why.sentence


def test_a_flood_of_names_does_not_fill_the_log(table, clock, caplog):
    with caplog.at_level(logging.WARNING):
        for n in range(5000):
            failed(table, f'r{n}')
    assert len(caplog.records) <= 11


def test_a_different_error_of_an_entry_is_logged_again(table, clock, caplog):
    failed(table, error=ValueError('x'))
    failed(table, error=KeyError('x'))
    assert table.entry(K.REQUEST, 'r1').cause == 'KeyError'


def test_operators_see_the_most_frequent_failure_first(table, clock):
    failed(table, 'r1')
    clock.now += 60
    failed(table, 'r1')
    failed(table, 'h1', kind=K.HOST)
    told = [(each.kind, each.name, each.times) for each in table.entries()]
    assert told == [('request', 'r1', 2), ('host', 'h1', 1)]
    assert table.entries()[0].again_s == 120
