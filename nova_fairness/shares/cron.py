# SPDX-License-Identifier: Apache-2.0

"""Cron lines: times that repeat.

A line has the five fields of crontab(5): minute, hour, day of the month,
month, day of the week. All else is refused, also extensions such as
``@daily``, a year or ``L``. So a line that was accepted can be evaluated at
every time and in every zone, always with the same result.

Where clocks change, a line with fixed hours follows cron(8) of Debian: a local
time that occurs twice counts once, the first time, and a local time that is
skipped counts as the time of the change. A line whose hour begins with ``*``
follows the local clock: its times occur as often as the clock shows them.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime as dt
import functools
import math
import re
import types

LONGEST = 200
"""Most characters of a line."""

_FIELDS = ('minute', 'hour', 'day of the month', 'month', 'day of the week')
_LEAST = (0, 0, 1, 1, 0)
_MOST = (59, 23, 31, 12, 7)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEK = ('sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat')
_YEAR = (
    *('jan', 'feb', 'mar', 'apr', 'may', 'jun'),
    *('jul', 'aug', 'sep', 'oct', 'nov', 'dec'),
)
_NO_NAMES: Mapping[str, int] = types.MappingProxyType({})
_NAMES: tuple[Mapping[str, int], ...] = (
    _NO_NAMES,
    _NO_NAMES,
    _NO_NAMES,
    {name: number for number, name in enumerate(_YEAR, 1)},
    {name: number for number, name in enumerate(_WEEK)},
)
_PART = re.compile(
    '([*]|[0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?(?:/([0-9]{1,2}))?'
)
_BLANKS = re.compile('[ \t]+')

_MONTHS_AHEAD = 12 * 9
"""Most months that are searched: after a 29 February, the next one comes
within eight years."""

_TURN = dt.timedelta(hours=3)
"""Clocks change by less than this time."""

_MINUTE = dt.timedelta(minutes=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST = dt.datetime(100, 1, 1)
_LAST = dt.datetime(9900, 1, 1)
_EARLIEST_S = (_FIRST.replace(tzinfo=dt.UTC) - _EPOCH).total_seconds()
_LATEST_S = (_LAST.replace(tzinfo=dt.UTC) - _EPOCH).total_seconds()


@dataclasses.dataclass(frozen=True, slots=True)
class CronLine:
    """A parsed line; made by :func:`parse_line`. All tuples are ascending.

    :ivar minutes: minutes of the hour.
    :ivar hours: hours of the day.
    :ivar days: days of the month; empty for all.
    :ivar months: months of the year.
    :ivar weekdays: days of the week, Sunday is 0; empty for all.
    :ivar is_given: whether the line has fixed hours; otherwise its hour begins
        with ``*``.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    is_given: bool

    def last(self, zone: dt.tzinfo, now: float) -> float | None:
        """The latest time of the line up to ``now``.

        :param zone: time zone of the line.
        :param now: seconds of the epoch.
        :returns: seconds of the epoch; ``None`` if there is no such time, or
            ``now`` is out of the range that can be searched.
        """
        if not _EARLIEST_S < now < _LATEST_S:
            return None
        at = _utc_time(now)
        here = _local_time(at, zone)
        found: dt.datetime | None = None
        for wall in self._times_backward(here + _clock_change_bound(zone, at)):
            if found is not None and wall < _local_time(
                found, zone
            ) - _clock_change_bound(zone, found):
                break
            for each in self._utc_times(wall, zone):
                if each <= at and (found is None or each > found):
                    found = each
        return None if found is None else (found - _EPOCH).total_seconds()

    def next(self, zone: dt.tzinfo, now: float) -> float | None:
        """The first time of the line after ``now``; see :meth:`last`."""
        if not _EARLIEST_S < now < _LATEST_S:
            return None
        at = _utc_time(now)
        here = _local_time(at, zone)
        found: dt.datetime | None = None
        for wall in self._times_forward(here - _clock_change_bound(zone, at)):
            if found is not None and wall > _local_time(
                found, zone
            ) + _clock_change_bound(zone, found):
                break
            for each in self._utc_times(wall, zone):
                if each > at and (found is None or each < found):
                    found = each
        return None if found is None else (found - _EPOCH).total_seconds()

    def _utc_times(
        self, wall: dt.datetime, zone: dt.tzinfo
    ) -> tuple[dt.datetime, ...]:
        """Times in UTC of a local time that counts: none, one or two."""
        first = wall.replace(tzinfo=zone, fold=0).astimezone(dt.UTC)
        second = wall.replace(tzinfo=zone, fold=1).astimezone(dt.UTC)
        if first < second:
            return (first,) if self.is_given else (first, second)
        if _local_time(first, zone) == wall:
            return (first,)
        # The local clock skips this time.
        return (
            (_clock_change_time(zone, second, first),) if self.is_given else ()
        )

    def _times_backward(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Local times of the line up to a local time, the latest first."""
        year, month = wall.year, wall.month
        for _ in range(_MONTHS_AHEAD):
            for day in reversed(self._days_of(year, month)):
                if dt.datetime(year, month, day) > wall:
                    continue
                for hour in reversed(self.hours):
                    for minute in reversed(self.minutes):
                        at = dt.datetime(year, month, day, hour, minute)
                        if at <= wall:
                            yield at
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)

    def _times_forward(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Local times of the line from a local time on, the earliest first."""
        year, month = wall.year, wall.month
        for _ in range(_MONTHS_AHEAD):
            for day in self._days_of(year, month):
                if dt.datetime(year, month, day, 23, 59) < wall:
                    continue
                for hour in self.hours:
                    for minute in self.minutes:
                        at = dt.datetime(year, month, day, hour, minute)
                        if at >= wall:
                            yield at
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        """Days of a month on which the line has times, ascending."""
        if month not in self.months:
            return ()
        return _matching_days(self.days, self.weekdays, year, month)


@functools.lru_cache(maxsize=1024)
def parse_line(text: str) -> CronLine:
    """Parse a line; parsed lines are cached.

    :raises ValueError: if the text is not a line, or the line has no times.
    """
    given = _BLANKS.split(text.strip(' \t')) if len(text) <= LONGEST else []
    if len(given) != len(_FIELDS):
        raise ValueError(
            'the start of a window must be a cron line of five fields, got'
            f' {text!r:.60}; give minute, hour, day of the month, month and'
            f' day of the week, with at most {LONGEST} characters'
        )
    try:
        minutes, hours, days, months, weekdays = (
            _parse_field(field, each) for field, each in enumerate(given)
        )
    except ValueError as error:
        raise ValueError(
            'the start of a window must be a cron line of five fields, got'
            f' {text!r:.60}: {error}'
        ) from None
    is_any_day = given[2].startswith('*') and len(days) == _MOST[2]
    is_any_weekday = given[4].startswith('*') and len(weekdays) == 7
    longest = max(_DAYS[month - 1] for month in months)
    if is_any_weekday and days[0] > longest:
        raise ValueError(f'the window {text!r} never begins')
    return CronLine(
        minutes,
        hours,
        () if is_any_day else days,
        months,
        () if is_any_weekday else weekdays,
        not given[1].startswith('*'),
    )


def _parse_field(field: int, text: str) -> tuple[int, ...]:
    """Numbers of a field, ascending."""
    found: set[int] = set()
    for part in text.lower().split(','):
        form = _PART.fullmatch(part)
        if form is None:
            raise ValueError(
                f'{_FIELDS[field]} must be *, numbers, or ranges of them, got'
                f' {text!r:.40}'
            )
        first, last = _range_ends(field, form[1], form[2], form[3] is not None)
        step = int(form[3] or 1)
        if step < 1:
            raise ValueError(f'{_FIELDS[field]} has a step of {step}')
        found.update(_numbers_of_range(field, first, last, step))
    return tuple(sorted(found))


def _range_ends(
    field: int, first: str, last: str | None, is_stepped: bool
) -> tuple[int, int]:
    """First and last number of a part of a field."""
    least, most = _LEAST[field], _MOST[field]
    if first == '*':
        if last is not None:
            raise ValueError(
                f'{_FIELDS[field]} has a range that begins with *'
            )
        # Sunday is both 0 and 7; * counts it once, as 0.
        return least, min(most, 6) if field == 4 else most
    begin = _parse_number(field, first)
    if last is not None:
        return begin, _parse_number(field, last)
    if is_stepped:
        return begin, min(most, 6) if field == 4 and begin < 7 else most
    return begin, begin


def _parse_number(field: int, text: str) -> int:
    number = _NAMES[field].get(text)
    if number is None:
        least, most = _LEAST[field], _MOST[field]
        if not (text.isdigit() and least <= int(text) <= most):
            raise ValueError(
                f'{_FIELDS[field]} must be from {least} to {most}, got'
                f' {text!r}'
            )
        number = int(text)
    return number


def _numbers_of_range(
    field: int, first: int, last: int, step: int
) -> Iterator[int]:
    """Every ``step``-th number of a range; it may wrap around: fri-mon."""
    if field == 4 and last == 7 and first > 0:
        # Up to Sunday.
        numbers = [*range(first, 7), 0] if first < 7 else [0]
    elif first <= last:
        numbers = list(range(first, last + 1))
    else:
        least, most = _LEAST[field], 6 if field == 4 else _MOST[field]
        numbers = [*range(first, most + 1), *range(least, last + 1)]
    for number in numbers[::step]:
        yield number % 7 if field == 4 else number


@functools.lru_cache(maxsize=4096)
def _matching_days(
    days: tuple[int, ...], weekdays: tuple[int, ...], year: int, month: int
) -> tuple[int, ...]:
    """Days of a month that match the days or the weekdays.

    If both are empty, all days match.
    """
    begin = dt.date(year, month, 1)
    after = dt.date(year + month // 12, month % 12 + 1, 1)
    found = []
    for day in range(1, (after - begin).days + 1):
        # Sunday is 7 for dates.
        weekday = dt.date(year, month, day).isoweekday() % 7
        if day in days or weekday in weekdays or not (days or weekdays):
            found.append(day)
    return tuple(found)


def _utc_time(now: float) -> dt.datetime:
    return _EPOCH + dt.timedelta(seconds=math.floor(now))


def _local_time(at: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def _clock_change_bound(zone: dt.tzinfo, at: dt.datetime) -> dt.timedelta:
    """Bound by which local times may be out of order around a time."""
    offsets = {
        each.astimezone(zone).utcoffset()
        for each in (at - _TURN, at, at + _TURN)
    }
    return _TURN if len(offsets) > 1 else dt.timedelta(0)


def _clock_change_time(
    zone: dt.tzinfo, before: dt.datetime, after: dt.datetime
) -> dt.datetime:
    """Time of a clock change between two times, to the second."""
    first = before.astimezone(zone).utcoffset()
    while after - before > dt.timedelta(seconds=1):
        middle = before + dt.timedelta(
            seconds=(after - before).total_seconds() // 2
        )
        if middle.astimezone(zone).utcoffset() == first:
            before = middle
        else:
            after = middle
    return after
