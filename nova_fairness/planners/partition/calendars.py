# SPDX-License-Identifier: Apache-2.0

"""Windows of time in which the cloud has a fixed number of hosts."""

from collections.abc import Iterable
import dataclasses
import datetime as dt
import math

import croniter

from nova_fairness import exception
from nova_fairness.model import partition


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A time that comes again and again.

    :ivar begins: cron line of its begins: minute, hour, day of the month,
        month, day of the week.
    :ivar lasts_s: seconds, > 0.
    :ivar hosts: that the cloud has meanwhile, >= 0.
    :ivar zone: of the times in ``begins``.
    :raises BadPartition: if one of these is out of its range.
    """

    begins: str
    lasts_s: float
    hosts: int
    zone: dt.tzinfo = dt.UTC

    def __post_init__(self) -> None:
        if not croniter.croniter.is_valid(self.begins):
            raise exception.BadPartition(
                'a window begins by a cron line of five fields, got'
                f' {self.begins!r}'
            )
        if not (0 < self.lasts_s < math.inf and self.hosts >= 0):
            raise exception.BadPartition(
                f'the window {self.begins!r} must last more than 0 s and name'
                f' at least 0 hosts, got {self.lasts_s!r} and {self.hosts!r}'
            )

    def begun(self, now: float) -> float | None:
        """When it began that is going on, seconds of the epoch.

        :param now: seconds of the epoch.
        :returns: ``None`` outside of it.
        """
        # Strictly before the next second: what begins now has begun.
        next_second = dt.datetime.fromtimestamp(math.floor(now) + 1, self.zone)
        last = croniter.croniter(self.begins, next_second)
        at = last.get_prev(dt.datetime).timestamp()
        return at if now < at + self.lasts_s else None


def target(windows: Iterable[Window], now: float) -> partition.Target | None:
    """What the calendar says; of windows that overlap, the one begun last.

    :param windows: the first counts of those that began at once.
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
    return partition.Target(hosts, partition.Cause.CALENDAR)
