# SPDX-License-Identifier: Apache-2.0

"""Windows of time in which accounts may start something."""

import datetime as dt
import zoneinfo

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.shares import windows

HOUR_S = 3600.0
NIGHT = cluster.Window('0 20 * * mon-fri', 10 * HOUR_S)
WEEKEND = cluster.Window('0 0 * * sat', 48 * HOUR_S)
FRIDAY = '2026-03-06'


def at(text, zone=dt.UTC):
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ('given', 'now', 'expected'),
    [
        ([NIGHT], f'{FRIDAY} 19:59:59', f'{FRIDAY} 20:00:00'),
        ([NIGHT], f'{FRIDAY} 20:00:00', None),
        ([NIGHT], '2026-03-07 05:59:59', None),
        ([NIGHT], '2026-03-07 06:00:00', '2026-03-09 20:00:00'),
        ([NIGHT, WEEKEND], '2026-03-07 06:00:00', None),
        ([NIGHT, WEEKEND], '2026-03-09 00:00:00', '2026-03-09 20:00:00'),
        ([NIGHT, WEEKEND], f'{FRIDAY} 12:00:00', f'{FRIDAY} 20:00:00'),
        ([], f'{FRIDAY} 12:00:00', None),
    ],
)
def test_the_next_opening_is_the_begin_of_the_first_window(
    given, now, expected
):
    found = windows.next_opening(given, at(now))
    assert found == (expected and at(expected))


@pytest.mark.parametrize('day', ['2026-01-09', '2026-07-10', '2026-03-27'])
def test_times_are_those_of_the_zone_also_when_clocks_change(day):
    rome = zoneinfo.ZoneInfo('Europe/Rome')
    window = cluster.Window('0 20 * * *', HOUR_S, rome)
    assert windows.next_opening([window], at(f'{day} 19:30', rome)) == at(
        f'{day} 20:00', rome
    )
    assert windows.next_opening([window], at(f'{day} 20:30', rome)) is None


@hypothesis.given(st.floats(1e9, 2e9))
def test_a_window_is_open_when_it_opens_and_not_before(now):
    opens = windows.next_opening([NIGHT], now)
    if opens is not None:
        assert opens > now
        assert windows.next_opening([NIGHT], opens) is None
        assert windows.next_opening([NIGHT], opens - 0.5) is not None


def test_all_accounts_above_must_be_open():
    accounts = (
        cluster.Account('night', windows=(NIGHT,)),
        cluster.Account('p', 'night'),
        cluster.Account('p/late', 'p', windows=(WEEKEND,)),
        cluster.Account('free'),
    )

    def closed(user, now, project='p'):
        return windows.Openings(accounts, at(now)).closed(project, user)

    assert closed('u', f'{FRIDAY} 21:00') is None
    assert closed('u', f'{FRIDAY} 12:00') == ('night', at(f'{FRIDAY} 20:00'))
    saturday = at('2026-03-07 00:00')
    assert closed('late', f'{FRIDAY} 12:00') == ('p/late', saturday)
    assert closed('late', '2026-03-07 01:00') is None
    assert closed('u', f'{FRIDAY} 12:00', 'free') is None


def test_without_windows_all_are_open():
    openings = windows.Openings((cluster.Account('p'),), at(FRIDAY))
    assert openings.closed('p', 'u') is None


@pytest.mark.parametrize(
    ('begins', 'lasts_s', 'message'),
    [
        ('at eight', HOUR_S, "cron line of five fields, got 'at eight'"),
        ('0 0 30 2 *', HOUR_S, 'never begins'),
        ('0 20 * * *', 0.0, 'must last more than 0 s'),
        ('0 20 * * *', float('inf'), 'must last more than 0 s'),
    ],
)
def test_impossible_windows_are_named(begins, lasts_s, message):
    assert message in windows.window_fault(begins, lasts_s)


def test_valid_windows_have_no_error():
    assert windows.window_fault(NIGHT.begins, NIGHT.lasts_s) is None
