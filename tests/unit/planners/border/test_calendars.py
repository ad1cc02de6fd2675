# SPDX-License-Identifier: Apache-2.0

import datetime as dt

from dateutil import tz
import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness import exception
from nova_fairness.model import border
from nova_fairness.planners.border import calendars

HOUR = 3600
NIGHT = calendars.CalendarWindow('0 20 * * *', 10 * HOUR, 7)


def at(text, zone=dt.UTC):
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ('time', 'is_in'),
    [
        ('2026-03-02 19:59:59', False),
        ('2026-03-02 20:00:00', True),
        ('2026-03-03 00:30:00', True),
        ('2026-03-03 05:59:59', True),
        ('2026-03-03 06:00:00', False),
        ('2026-03-03 12:00:00', False),
    ],
)
def test_a_window_holds_from_its_begin_to_its_end(time, is_in):
    expected = border.CloudTarget(7, border.HostCause.CALENDAR)
    found = calendars.calendar_target([NIGHT], at(time))
    assert found == (expected if is_in else None)


def test_of_windows_that_overlap_the_one_begun_last_holds():
    weekend = calendars.CalendarWindow('0 18 * * 5', 60 * HOUR, 2)
    friday_night = at('2026-03-06 21:00:00')
    saturday_noon = at('2026-03-07 12:00:00')
    for windows in ([NIGHT, weekend], [weekend, NIGHT]):
        assert calendars.calendar_target(windows, friday_night).hosts == 7
        assert calendars.calendar_target(windows, saturday_noon).hosts == 2


def test_the_first_of_windows_that_begin_at_once_holds():
    other = calendars.CalendarWindow('0 20 * * *', 1 * HOUR, 3)
    assert (
        calendars.calendar_target([other, NIGHT], at('2026-03-02 20:30')).hosts
        == 3
    )


@pytest.mark.parametrize('day', ['2026-01-10', '2026-07-10', '2026-03-29'])
def test_times_are_those_of_the_zone_also_when_clocks_change(day):
    rome = tz.gettz('Europe/Rome')
    window = calendars.CalendarWindow('0 20 * * *', HOUR, 1, rome)
    assert window.begun(at(f'{day} 20:30:00', rome)) == at(
        f'{day} 20:00:00', rome
    )
    assert window.begun(at(f'{day} 19:30:00', rome)) is None


@hypothesis.given(st.floats(1e9, 2e9))
def test_a_window_that_lasts_until_it_begins_again_always_holds(now):
    hourly = calendars.CalendarWindow('0 * * * *', HOUR, 1)
    begun = hourly.begun(now)
    assert begun <= now < begun + HOUR
    assert begun % HOUR == 0


@pytest.mark.parametrize(
    ('begins', 'lasts_s', 'hosts', 'message'),
    [
        ('at eight', HOUR, 1, "cron line of five fields, got 'at eight'"),
        ('', HOUR, 1, 'cron line'),
        ('0 20 * * *', 0, 1, 'must last more than 0 s'),
        ('0 20 * * *', float('nan'), 1, 'must last more than 0 s'),
        ('0 20 * * *', HOUR, -1, 'at least 0 hosts'),
    ],
)
def test_a_window_that_cannot_be_is_refused(begins, lasts_s, hosts, message):
    with pytest.raises(exception.BadPartition, match=message):
        calendars.CalendarWindow(begins, lasts_s, hosts)
