# SPDX-License-Identifier: Apache-2.0

"""Windows of time that repeat, by cron lines."""

from collections.abc import Iterable
import datetime as dt
import functools
import math

from nova_fairness.model import cluster
from nova_fairness.shares import cron
from nova_fairness.shares import tree as tree_module


def window_fault(begins: str, lasts_s: float) -> str | None:
    """The fault of a window; ``None`` if it has none.

    :param begins: cron line of the starts of the window; see :mod:`.cron`.
    :param lasts_s: length of the window, seconds.
    """
    try:
        cron.parse_line(begins)
    except ValueError as error:
        return str(error)
    if not 0 < lasts_s <= tree_module.LONGEST_S:
        return (
            f'the window {begins!r} must last more than 0 s, and at most'
            f' {tree_module.LONGEST_S:g}, got {lasts_s!r:.40}'
        )
    return None


def current_start(
    begins: str, lasts_s: float, zone: dt.tzinfo, now: float
) -> float | None:
    """Start of the current window, seconds of the epoch.

    :param begins: cron line of the starts of the window.
    :param lasts_s: length of the window, seconds, > 0.
    :param zone: time zone of ``begins``.
    :param now: seconds of the epoch.
    :returns: ``None`` outside of a window, or if the line has a
        :func:`window_fault`.
    """
    line = _parse_line(begins)
    at = line.last(zone, now) if line else None
    return at if at is not None and now < at + lasts_s else None


def next_start(begins: str, zone: dt.tzinfo, now: float) -> float:
    """Next start of a window, seconds of the epoch, > ``now``.

    :param begins: cron line of the starts of the window.
    :param zone: time zone of ``begins``.
    :param now: seconds of the epoch.
    :returns: ``inf`` if there is none, also if the line has a
        :func:`window_fault`.
    """
    line = _parse_line(begins)
    at = line.next(zone, now) if line else None
    return math.inf if at is None else at


def next_opening(
    windows: Iterable[cluster.Window], now: float
) -> float | None:
    """Next start of the first of some windows, seconds of the epoch.

    :param windows: windows in which requests may start.
    :param now: seconds of the epoch.
    :returns: ``None`` if ``now`` is in a window, or if there are no windows:
        then requests may start at any time; ``inf`` if no window ever starts.
    """
    given = tuple(windows)
    if not given or any(
        current_start(each.begins, each.lasts_s, each.zone, now) is not None
        for each in given
    ):
        return None
    return min(next_start(each.begins, each.zone, now) for each in given)


class Openings:
    """Tells which accounts may start requests at a time.

    :param accounts: of the share tree.
    :param now: seconds of the epoch.
    """

    def __init__(
        self, accounts: Iterable[cluster.Account], now: float
    ) -> None:
        self._above = tree_module.AccountsWithSetting(
            accounts, lambda account: bool(account.windows or account.fault)
        )
        self._opens = functools.cache(
            lambda windows: next_opening(windows, now)
        )

    def closed(self, project: str, user: str) -> tuple[str, float] | None:
        """The account of a user, or above it, whose window opens last.

        :returns: name of the account and time at which its window opens,
            seconds of the epoch; ``None`` if all are open.
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

    def set_aside(self, project: str, user: str) -> str | None:
        """Name of an account of a user, or above it, that has a fault."""
        if not self._above:
            return None
        above = self._above.of(project, user)
        return next((each.name for each in above if each.fault), None)


def _parse_line(begins: str) -> cron.CronLine | None:
    """A parsed line; ``None`` if it has a fault."""
    try:
        return cron.parse_line(begins)
    except ValueError:
        return None
