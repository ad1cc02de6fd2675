# SPDX-License-Identifier: Apache-2.0

"""Counts of an exchange, and a log that a flood cannot fill."""

import collections
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import logging
import threading

_EVERY_S = 60.0
_SOURCES = 10


class NameCounts:
    """Counts by name; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, *names: str, count: int = 1) -> None:
        """Count some more of each."""
        with self._lock:
            for name in names:
                self._counts[name] += count

    def counts(self) -> Mapping[str, int]:
        """All counts so far, by name."""
        with self._lock:
            return dict(sorted(self._counts.items()))


class QuietLog:
    """Says each kind of thing about a source once a minute; any thread.

    And about ten sources a minute at most: sources can be invented.

    :param log: where to.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float]
    ) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._minutes: dict[str, _Minute] = {}

    def warning(self, kind: str, source: str, text: str) -> None:
        """Say something about a source, unless enough was said.

        :param kind: out of a few.
        :param source: host or other name.
        """
        unsaid = self._due(kind, source)
        if unsaid is None:
            return
        more = f' ({unsaid} like it were not logged)' if unsaid else ''
        self._log.warning('%s%s', text, more)

    def _due(self, kind: str, source: str) -> int | None:
        """Number left unsaid, ``None`` to say nothing now."""
        now_s = self._clock()
        with self._lock:
            minute = self._minutes.get(kind)
            if minute is None or now_s - minute.began_s >= _EVERY_S:
                unsaid = 0 if minute is None else minute.unsaid
                self._minutes[kind] = _Minute(now_s, {source})
                return unsaid
            if source in minute.sources or len(minute.sources) >= _SOURCES:
                minute.unsaid += 1
                return None
            minute.sources.add(source)
            return 0


@dataclasses.dataclass(slots=True)
class _Minute:
    """Messages of one kind since a time."""

    began_s: float
    sources: set[str]
    unsaid: int = 0
