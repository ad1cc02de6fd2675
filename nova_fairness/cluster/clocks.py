# SPDX-License-Identifier: Apache-2.0

"""The time that decisions use when clocks may be wrong.

Stored times lie days and weeks apart, and are compared with now: a clock that
is wrong for one cycle would let requests expire and servers leave. So the
clock of the host counts only while it agrees, to :data:`MOST_S`, with a clock
that never steps and with the clock of the database. If it disagrees, time goes
on from the last agreement, and :attr:`Clocks.fault` says so: until clocks
agree, nothing irreversible is done. Smaller steps add up for
:data:`TOGETHER_S`: many small steps are as wrong as a large one.

A permanent step is accepted once it has lasted for some time without another
step, and the database agrees with it. A process that starts has no earlier
agreement: it begins with the time of the database.
"""

from collections.abc import Callable
import threading
import time

MOST_S = 60.0
"""Seconds by which clocks may differ; NTP mends smaller errors by steps."""

TOGETHER_S = 3600.0
"""Seconds for which small steps are added up."""

SETTLES_S = 3600.0
"""Seconds after which a permanent step is accepted, by default."""


def _unknown() -> float | None:
    """No time: for stores without a clock of their own."""
    return None


def uptime_s() -> float:
    """Seconds of a clock that never steps, and also counts suspended time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clocks:
    """Decides which time counts; any thread may ask.

    :param wall: seconds of the epoch, by the clock of the host.
    :param steady: seconds of a clock that never steps.
    :param database: seconds of the epoch, by the clock of the database;
        ``None`` if it has no clock.
    :param settles_s: seconds after which a permanent step is accepted, > 0.
    :ivar suspensions: how often clocks began to disagree.
    """

    def __init__(
        self,
        wall: Callable[[], float],
        steady: Callable[[], float],
        database: Callable[[], float | None] = _unknown,
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
        """Seconds of the epoch, counted from the last agreement."""
        with self._lock:
            return self._judged_time()

    @property
    def fault(self) -> str:
        """Why nothing irreversible may be done; '' if clocks agree."""
        with self._lock:
            self._judged_time()
            return self._fault

    def look(self) -> str:
        """Read the clock of the database, too.

        :returns: :attr:`fault`.
        :raises StoreError: if its time cannot be read.
        """
        before_s = self._steady()
        told = self._database()
        with self._lock:
            # The answer may take long: its time lies between both readings.
            middle_s = (before_s + self._steady()) / 2
            self._ahead = None if told is None else told - middle_s
            self._judged_time()
            self._agreed = self._agreed or not self._fault
            return self._fault

    def _judged_time(self) -> float:
        """The time that counts; records whether clocks agree."""
        wall, steady_s = self._wall(), self._steady()
        if not self._agreed and self._ahead is not None:
            self._at, self._at_s = self._ahead + steady_s, steady_s
        expected = self._at + steady_s - self._at_s
        fault = self._found(wall, steady_s, wall - expected)
        if fault and not self._fault:
            self.suspensions += 1
        self._fault = fault
        is_off = abs(wall - expected) > MOST_S
        if fault and is_off:
            return expected
        if is_off or steady_s - self._at_s >= TOGETHER_S:
            self._at, self._at_s = wall, steady_s
        return wall

    def _found(self, wall: float, steady_s: float, off: float) -> str:
        """Fault of the clock of the host; '' if it is right.

        :param off: seconds by which it is ahead of the steady clock.
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
