# SPDX-License-Identifier: Apache-2.0

"""Counters by name, and a log with a limited rate."""

import collections
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import logging
import threading

_EVERY_S = 60.0
_SOURCES = 10


class NameCounts:
    """Counters by name; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, *names: str, count: int = 1) -> None:
        """Increase the counters of some names."""
        with self._lock:
            for name in names:
                self._counts[name] += count

    def counts(self) -> Mapping[str, int]:
        """Return all counters by name."""
        with self._lock:
            return dict(sorted(self._counts.items()))


class QuietLog:
    """Logs each kind of message about a source once a minute; thread-safe.

    It logs about at most ten sources a minute, because attackers can invent
    sources.

    :param log: the logger.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float]
    ) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._minutes: dict[str, _LoggedMinute] = {}

    def warning(self, kind: str, source: str, text: str) -> None:
        """Log a warning about a source, unless the rate is exceeded.

        :param kind: one of a few words.
        :param source: host or other name.
        """
        unsaid = self._suppressed_count(kind, source)
        if unsaid is None:
            return
        more = f' ({unsaid} like it were not logged)' if unsaid else ''
        self._log.warning('%s%s', text, more)

    def _suppressed_count(self, kind: str, source: str) -> int | None:
        """Return the number of suppressed messages; ``None`` suppresses
        this one.
        """
        now_s = self._clock()
        with self._lock:
            minute = self._minutes.get(kind)
            if minute is None or now_s - minute.began_s >= _EVERY_S:
                unsaid = 0 if minute is None else minute.unsaid
                self._minutes[kind] = _LoggedMinute(now_s, {source})
                return unsaid
            if source in minute.sources or len(minute.sources) >= _SOURCES:
                minute.unsaid += 1
                return None
            minute.sources.add(source)
            return 0


@dataclasses.dataclass(slots=True)
class _LoggedMinute:
    """Messages of one kind since a time."""

    began_s: float
    sources: set[str]
    unsaid: int = 0
