# SPDX-License-Identifier: Apache-2.0

"""Lines of cron: what is taken is evaluated at every moment, everywhere."""

import datetime as dt
import random
import time
import zoneinfo

from croniter import croniter
from croniter import CroniterBadDateError
import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.shares import cron
from nova_fairness.shares import windows
from tests.fixtures import effort

ZONES = sorted(zoneinfo.available_timezones())
NOWS = st.floats(0, 4.1e9)
LEAST, MOST = (0, 0, 1, 1, 0), (59, 23, 31, 12, 7)


def field(n):
    """Text of a field that is in its range."""
    number = st.integers(LEAST[n], MOST[n])
    part = st.one_of(
        st.just('*'),
        number.map(str),
        st.tuples(number, number).map(lambda ends: f'{ends[0]}-{ends[1]}'),
        st.integers(1, 99).map(lambda step: f'*/{step}'),
        st.tuples(number, number, st.integers(1, 9)).map(
            lambda ends: f'{ends[0]}-{ends[1]}/{ends[2]}'
        ),
    )
    return st.lists(part, min_size=1, max_size=3).map(','.join)


LINES = st.tuples(*(field(n) for n in range(5))).map(' '.join)
NOISE = st.text('0123456789*/-,@LWRH#? \t\n?MONmonjan٣²', max_size=40)


@hypothesis.given(
    st.one_of(LINES, NOISE), NOWS, st.sampled_from(ZONES),
    st.floats(1e-3, 1e9),
)  # fmt: skip
@hypothesis.settings(max_examples=effort.count_to_try(200), deadline=None)
def test_an_accepted_line_is_evaluated_at_every_moment(
    line, now, name, lasts_s
):
    zone = zoneinfo.ZoneInfo(name)
    begun = windows.current_start(line, lasts_s, zone, now)
    following = windows.next_start(line, zone, now)
    opens = windows.next_opening([cluster.Window(line, lasts_s, zone)], now)
    if windows.window_fault(line, lasts_s) is not None:
        assert (begun, following, opens) == (None, float('inf'), float('inf'))
        return
    assert now < following < now + 9 * 366 * 86400
    assert opens in (None, following)
    assert (opens is None) == (begun is not None)
    if begun is not None:
        assert begun <= now < begun + lasts_s


def plain_field(n):
    """The same, of what others read alike: no range passes the end."""
    most = min(MOST[n], 6) if n == 4 else MOST[n]
    number = st.integers(LEAST[n], most)
    ends = st.lists(number, min_size=2, max_size=2, unique=True).map(sorted)
    part = st.one_of(
        number.map(str),
        ends.map(lambda ends: f'{ends[0]}-{ends[1]}'),
        st.tuples(ends, st.integers(1, 9)).map(
            lambda given: f'{given[0][0]}-{given[0][1]}/{given[1]}'
        ),
    )
    several = st.lists(part, min_size=1, max_size=3).map(','.join)
    return st.one_of(st.just('*'), st.just('*/2'), several)


def of_one_day_field(fields):
    # Where both are given, croniter errs about ends of months.
    *others, month, week = fields
    return ' '.join([*others, month, week if others[2] == '*' else '*'])


@hypothesis.given(
    st.tuples(*(plain_field(n) for n in range(5))).map(of_one_day_field), NOWS
)
@hypothesis.settings(max_examples=effort.count_to_try(300), deadline=None)
def test_without_clock_changes_times_agree_with_another_library(line, now):
    at = dt.datetime.fromtimestamp(int(now), dt.UTC)
    later = croniter(line, at + dt.timedelta(seconds=1))
    fault = windows.window_fault(line, 1.0)
    if fault is not None:
        with pytest.raises(CroniterBadDateError):
            later.get_next()
        return
    expected = later.get_prev(dt.datetime).timestamp()
    assert cron.parse_line(line).last(dt.UTC, now) == expected
    expected = croniter(line, at).get_next(dt.datetime).timestamp()
    assert cron.parse_line(line).next(dt.UTC, now) == expected


def by_minutes(line, zone, begin, end):
    """When a line comes, by looking at every minute of a span of time.

    Its times are given as a set of (hour, minute) of every day.
    """
    hours, minutes = line
    found, seen = [], set()
    before = None
    for at in range(begin, end, 60):
        wall = dt.datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)
        skipped = () if before is None else _between(before, wall)
        for each in (*skipped, wall):
            is_one = each.hour in hours and each.minute in minutes
            if is_one and each not in seen:
                seen.add(each)
                found.append(at)
        before = wall
    return sorted(set(found))


def _between(before, wall):
    each = before + dt.timedelta(minutes=1)
    while each < wall:
        yield each
        each += dt.timedelta(minutes=1)


CHANGES = [
    ('Europe/Prague', '2026-10-25'),
    ('Europe/Prague', '2026-03-29'),
    ('America/St_Johns', '2006-10-29'),
    ('America/Sao_Paulo', '2018-11-04'),
    ('America/Sao_Paulo', '2018-02-18'),
    ('Australia/Lord_Howe', '2026-04-05'),
    ('Australia/Lord_Howe', '2026-10-04'),
    ('Pacific/Apia', '2011-12-30'),
    ('Asia/Pyongyang', '2018-05-05'),
]


@pytest.mark.parametrize(('name', 'day'), CHANGES)
def test_given_times_come_once_a_day_where_clocks_change(name, day):
    zone, chance = zoneinfo.ZoneInfo(name), random.Random(day)
    noon = dt.datetime.fromisoformat(day).replace(hour=12, tzinfo=zone)
    begin = int(noon.timestamp()) - 86400
    for _ in range(4):
        hours = chance.sample(range(24), chance.choice((1, 2)))
        if chance.random() < 0.5:
            hours[0] = chance.choice((0, 1, 2, 23))
        minutes = chance.sample(range(60), chance.choice((1, 2)))
        text = (
            f'{",".join(map(str, minutes))} {",".join(map(str, hours))} * * *'
        )
        line = cron.parse_line(text)
        expected = by_minutes(
            (hours, minutes), zone, begin - begin % 60, begin + 2 * 86400
        )
        at, found = expected[0] - 1.0, []
        while (at := line.next(zone, at)) <= expected[-1]:
            found.append(at)
        assert found == expected, (name, text)
        assert [line.last(zone, each) for each in found] == found
        assert [line.last(zone, each - 0.5) for each in found[1:]] == (
            found[:-1]
        )


@pytest.mark.parametrize(('name', 'day'), CHANGES)
def test_a_line_of_every_hour_comes_whenever_the_clock_shows_it(name, day):
    zone = zoneinfo.ZoneInfo(name)
    noon = dt.datetime.fromisoformat(day).replace(hour=12, tzinfo=zone)
    begin = int(noon.timestamp()) // 60 * 60 - 86400
    line = cron.parse_line('30 * * * *')
    expected = [
        at
        for at in range(begin, begin + 2 * 86400, 60)
        if dt.datetime.fromtimestamp(at, zone).minute == 30
    ]
    at, found = expected[0] - 1.0, []
    while (at := line.next(zone, at)) <= expected[-1]:
        found.append(at)
    assert found == expected
    assert [line.last(zone, each) for each in found] == found


@pytest.mark.parametrize(
    'line',
    [
        '0 0 1 1 * 0 2030', '0 0 1 6 * 0', '@yearly', '@reboot', '@daily',
        '0 0 L * *', '0 0 * * sat#2', '0 0 * * L5', 'H H * * *', 'R R * * *',
        '*/0 * * * *', '0 0 ? * *', '٣ 0 * * *', '0 ² * * *', '60 0 * * *',
        '0 24 * * *', '0 0 0 * *', '0 0 32 * *', '0 0 * 13 *', '0 0 * * 8',
        '-1 0 * * *', '0 0 30 2 *', '0 0 31 feb,apr *', '', ' ', '* * * *',
        '* * * * * ' * 100, '0 0 * * mon-', '*-5 * * * *', '0,,1 * * * *',
        '0\n0 * * *', '1_0 0 * * *', '0x1 0 * * *', '0 0 * jan- *',
    ],
)  # fmt: skip
def test_a_text_that_is_no_line_of_five_fields_is_refused(line):
    fault = windows.window_fault(line, 60.0)
    assert fault is not None
    assert 'five fields' in fault or 'never begins' in fault
    assert len(fault) < 300


@pytest.mark.parametrize(
    ('line', 'expected'),
    [
        ('0 20 * * MON-fri', [1, 2, 3, 4, 5]),
        ('0 20 * * 7', [0]),
        ('0 20 * * fri-mon', [0, 1, 5, 6]),
        ('0 20 * * 5-7', [0, 5, 6]),
        ('0 20 * * 0-6/2', [0, 2, 4, 6]),
    ],
)
def test_days_of_the_week_have_names_and_sunday_two_numbers(line, expected):
    assert list(cron.parse_line(line).weekdays) == expected


@pytest.mark.parametrize('lasts_s', [1e10, 1e300, float('nan'), -1.0])
def test_a_window_that_lasts_too_long_is_refused(lasts_s):
    assert 'must last' in windows.window_fault('0 20 * * *', lasts_s)


def test_the_dearest_line_costs_little():
    everything = ','.join(['*'] * 8)
    line = f'{everything} {everything} 29 2 *'
    assert windows.window_fault(line, 60.0) is None
    zone = zoneinfo.ZoneInfo('Europe/Prague')
    begin_s = time.process_time()
    for day in range(200):
        windows.current_start(line, 60.0, zone, 1e9 + day * 86400.0 * 37)
        windows.next_start('* * * * *', zone, 1792891800.0 + day)
    assert time.process_time() - begin_s < 2.0


@pytest.mark.parametrize('now', [-1e300, -1e11, 1e12, 1e300, float('nan')])
def test_a_moment_beyond_all_calendars_is_outside(now):
    assert windows.current_start('* * * * *', 60.0, dt.UTC, now) is None
    assert windows.next_start('* * * * *', dt.UTC, now) == float('inf')
