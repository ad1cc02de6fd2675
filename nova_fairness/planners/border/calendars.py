# SPDX-License-Identifier: Apache-2.0

"""Calendar: windows of time in which the cloud has a fixed number of hosts."""

from collections.abc import Iterable
import dataclasses
import datetime as dt
import math

from nova_fairness import exception
from nova_fairness.model import border
from nova_fairness.shares import windows as windows_module


@dataclasses.dataclass(frozen=True, slots=True)
class CalendarWindow:
    """A repeated window of time, with the number of hosts of the cloud.

    :ivar begins: cron expression of the starts of the window: minute, hour,
        day of the month, month, day of the week.
    :ivar lasts_s: length of the window, seconds, > 0.
    :ivar hosts: number of hosts of the cloud during the window, >= 0.
    :ivar zone: time zone of ``begins``.
    :raises BadPartition: if a value is out of its range.
    """

    begins: str
    lasts_s: float
    hosts: int
    zone: dt.tzinfo = dt.UTC

    def __post_init__(self) -> None:
        if fault := windows_module.window_fault(self.begins, self.lasts_s):
            raise exception.BadPartition(fault)
        if self.hosts < 0:
            raise exception.BadPartition(
                f'the window {self.begins!r} must name at least 0 hosts, got'
                f' {self.hosts!r}'
            )

    def begun(self, now: float) -> float | None:
        """Return the start of the window that includes a time, seconds of the
        epoch.

        :param now: seconds of the epoch.
        :returns: ``None`` outside of the window.
        """
        return windows_module.current_start(
            self.begins, self.lasts_s, self.zone, now
        )


def calendar_target(
    windows: Iterable[CalendarWindow], now: float
) -> border.CloudTarget | None:
    """Return the number of hosts that the calendar sets; of overlapping
    windows, the one with the latest start.

    :param windows: windows; of windows with the same start, the first one is
        used.
    :param now: seconds of the epoch.
    :returns: ``None`` outside of all windows.
    """
    newest, hosts = -math.inf, None
    for window in windows:
        begun = window.begun(now)
        if begun is not None and begun > newest:
            newest, hosts = begun, window.hosts
    if hosts is None:
        return None
    return border.CloudTarget(hosts, border.HostCause.CALENDAR)
