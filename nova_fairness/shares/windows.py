# SPDX-License-Identifier: Apache-2.0

"""Windows of time that come again and again, by cron lines."""

from collections.abc import Iterable
import datetime as dt
import functools
import math

import croniter

from nova_fairness.model import cluster
from nova_fairness.shares import tree as tree_module

_SOME_DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def fault(begins: str, lasts_s: float) -> str | None:
    """Say why a window cannot be; ``None`` if it can.

    :param begins: cron line of its begins.
    :param lasts_s: seconds.
    """
    if not croniter.croniter.is_valid(begins):
        return f'a window begins by a cron line of five fields, got {begins!r}'
    if not 0 < lasts_s < math.inf:
        return (
            f'the window {begins!r} must last more than 0 s, got {lasts_s!r}'
        )
    try:
        croniter.croniter(begins, _SOME_DAY).get_next()
    except croniter.CroniterBadDateError:
        return f'the window {begins!r} never begins'
    return None


def begun(
    begins: str, lasts_s: float, zone: dt.tzinfo, now: float
) -> float | None:
    """When the window began that is going on, seconds of the epoch.

    :param begins: cron line of its begins.
    :param lasts_s: seconds, > 0.
    :param zone: of the times in ``begins``.
    :param now: seconds of the epoch.
    :returns: ``None`` outside of it.
    """
    at = _line(begins, zone, now).get_prev(dt.datetime).timestamp()
    return at if now < at + lasts_s else None


def begins_next(begins: str, zone: dt.tzinfo, now: float) -> float:
    """When a window begins next, seconds of the epoch, > ``now``.

    :param begins: cron line of its begins.
    :param zone: of the times in it.
    :param now: seconds of the epoch.
    """
    last = dt.datetime.fromtimestamp(math.floor(now), zone)
    found = croniter.croniter(begins, last).get_next(dt.datetime)
    return float(found.timestamp())


def opens(windows: Iterable[cluster.Window], now: float) -> float | None:
    """When the first of some windows begins next, seconds of the epoch.

    :param windows: in which something may happen.
    :param now: seconds of the epoch.
    :returns: ``None`` if one is going on, or if there are none: then it may
        happen at any time.
    """
    given = tuple(windows)
    if not given or any(
        begun(each.begins, each.lasts_s, each.zone, now) is not None
        for each in given
    ):
        return None
    return min(begins_next(each.begins, each.zone, now) for each in given)


class Openings:
    """Says who may start at one moment.

    :param accounts: of the share tree.
    :param now: seconds of the epoch.
    """

    def __init__(
        self, accounts: Iterable[cluster.Account], now: float
    ) -> None:
        self._above = tree_module.Above(
            accounts, lambda account: bool(account.windows)
        )
        self._opens = functools.cache(lambda windows: opens(windows, now))

    def closed(self, project: str, user: str) -> tuple[str, float] | None:
        """The account above a user that opens last, and when.

        :returns: its name and seconds of the epoch; ``None`` if all are open.
        """
        if not self._above:
            return None
        found = [
            (at, each.name)
            for each in self._above.of(project, user)
            if (at := self._opens(each.windows)) is not None
        ]
        if not found:
            return None
        at, name = max(found)
        return name, at


def _line(begins: str, zone: dt.tzinfo, now: float) -> croniter.croniter:
    # Strictly before the next second: what begins now has begun.
    return croniter.croniter(
        begins, dt.datetime.fromtimestamp(math.floor(now) + 1, zone)
    )
