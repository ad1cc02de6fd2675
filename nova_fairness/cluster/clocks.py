# SPDX-License-Identifier: Apache-2.0

"""The present time for decisions, protected against wrong clocks.

Decisions compare stored times, which are days or weeks apart, with the present
time. A clock that is wrong in one cycle would expire requests and evict
servers. Therefore the clock of the host is used only while it agrees, to
:data:`MOST_S`, with a monotonic clock and with the clock of the database.
While it disagrees, time is counted from the last agreement, and
:attr:`Clocks.fault` describes the disagreement. Until the clocks agree, the
service does nothing irreversible. Small steps are added up for
:data:`TOGETHER_S`, because many small steps are as wrong as a large one.

A permanent step is accepted after some time without another step, if the
database agrees with it. A process that starts uses the time of the database.
"""

from collections.abc import Callable
import threading
import time

MOST_S = 60.0
"""Largest accepted difference between clocks, seconds; NTP corrects smaller
errors by steps.
"""

TOGETHER_S = 3600.0
"""Seconds for which small steps are added up."""

SETTLES_S = 3600.0
"""Default number of seconds after which a permanent step is accepted."""


def _no_database_time() -> float | None:
    """Return ``None``: for stores that have no clock."""
    return None


def uptime_s() -> float:
    """Return the seconds of a clock that never steps and includes suspended
    time.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clocks:
    """Returns the present time, protected against wrong clocks. Any thread may
    call it.

    :param wall: returns seconds of the epoch, from the clock of the host.
    :param steady: returns seconds of a clock that never steps.
    :param database: returns seconds of the epoch, from the clock of the
        database; ``None`` if it has no clock.
    :param settles_s: seconds after which a permanent step is accepted, > 0.
    :ivar suspensions: number of times that the clocks began to disagree.
    """

    def __init__(
        self,
        wall: Callable[[], float],
        steady: Callable[[], float],
        database: Callable[[], float | None] = _no_database_time,
        settles_s: float = SETTLES_S,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._database = database
        self._settles_s = settles_s
        self._lock = threading.Lock()
        self._at, self._at_s = wall(), steady()
        self._ahead: float | None = None
        self._agreed = False
        self._fault = ''
        self._off = self._since_s = 0.0
        self.suspensions = 0

    def now(self) -> float:
        """Return the present time, seconds of the epoch, counted from the
        last agreement of the clocks.
        """
        with self._lock:
            return self._trusted_time()

    @property
    def fault(self) -> str:
        """Describe how the clocks disagree; '' if they agree. While they
        disagree, nothing irreversible may be done.
        """
        with self._lock:
            self._trusted_time()
            return self._fault

    def look(self) -> str:
        """Compare the clock of the host with that of the database.

        :returns: :attr:`fault`.
        :raises StoreError: if the time of the database cannot be read.
        """
        before_s = self._steady()
        told = self._database()
        with self._lock:
            # The answer may take long: its time lies between both readings.
            middle_s = (before_s + self._steady()) / 2
            self._ahead = None if told is None else told - middle_s
            self._trusted_time()
            self._agreed = self._agreed or not self._fault
            return self._fault

    def _trusted_time(self) -> float:
        """Return the time to use, and record whether the clocks agree."""
        wall, steady_s = self._wall(), self._steady()
        if not self._agreed and self._ahead is not None:
            self._at, self._at_s = self._ahead + steady_s, steady_s
        expected = self._at + steady_s - self._at_s
        fault = self._clock_fault(wall, steady_s, wall - expected)
        if fault and not self._fault:
            self.suspensions += 1
        self._fault = fault
        is_off = abs(wall - expected) > MOST_S
        if fault and is_off:
            return expected
        if is_off or steady_s - self._at_s >= TOGETHER_S:
            self._at, self._at_s = wall, steady_s
        return wall

    def _clock_fault(self, wall: float, steady_s: float, off: float) -> str:
        """Describe the fault of the clock of the host; '' if it is right.

        :param off: seconds by which the clock of the host is ahead of the
            monotonic clock.
        """
        apart = 0.0
        if self._ahead is not None:
            apart = wall - (self._ahead + steady_s)
        is_apart, has_stepped = abs(apart) > MOST_S, abs(off) > MOST_S
        if not (is_apart or has_stepped):
            return ''
        is_new = not self._fault or abs(off - self._off) > MOST_S
        if is_new or is_apart:
            self._off, self._since_s = off, steady_s
        if is_apart:
            return (
                f'the clock of this host is {_offset_text(apart)} of that of'
                ' the database'
            )
        if steady_s - self._since_s >= self._settles_s:
            return ''
        return (
            'the clock of this host stepped: it is'
            f' {_offset_text(off)} of before'
        )


def _offset_text(off_s: float) -> str:
    return f'{abs(off_s):.0f} s {"ahead" if off_s > 0 else "behind"}'
