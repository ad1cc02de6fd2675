# SPDX-License-Identifier: Apache-2.0

"""Cached values of another service, queried outside the rounds."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import logging
import math
import queue
import threading
import time
from typing import Generic
from typing import TypeVar

LOG = logging.getLogger(__name__)

Value = TypeVar('Value')

RETRY_S = 30.0
"""Seconds until an unanswered query is repeated."""

MOST = 100_000
"""Largest number of cached values; the least recently used one is deleted
first."""

_JOIN_S = 2.0


@dataclasses.dataclass
class _Entry(Generic[Value]):
    """Value of one key, and its age.

    :ivar values: the value, if there is one.
    :ivar due_s: time of the next query; infinite during a query.
    """

    values: tuple[Value, ...]
    due_s: float


class Lookup(Generic[Value]):
    """Queries values on its own thread; readers never wait.

    :param what: name of the values, for the log.
    :param fetch: queries the value of one key; may block, and raise anything;
        returns ``None`` if there is no value.
    :param lifetime_s: seconds after which a value that is read is queried
        again.
    :param on_found: called on that thread with the key of a new or changed
        value.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        what: str,
        fetch: Callable[[str], Value | None],
        lifetime_s: float = math.inf,
        on_found: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._fetch = fetch
        self._lifetime_s = lifetime_s
        self._on_found = on_found
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: collections.OrderedDict[str, _Entry[Value]] = (
            collections.OrderedDict()
        )
        self._queries: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ''

    @property
    def problem(self) -> str:
        """Why the newest query failed; empty if it succeeded."""
        return self._problem

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self._answer_queries,
            name=self._what.replace(' ', '-'),
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; it remains if it hangs in a query."""
        self._stopping.set()
        self._queries.put(None)
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def known(self, keys: Iterable[str]) -> Mapping[str, Value]:
        """Return the values known now, and queue queries for the others.

        :param keys: of the wanted values.
        :returns: values by key; keys without a value are absent.
        """
        now_s = self._clock()
        found: dict[str, Value] = {}
        with self._lock:
            for key in keys:
                entry = self._entries.setdefault(key, _Entry((), now_s))
                self._entries.move_to_end(key)
                if entry.due_s <= now_s:
                    entry.due_s = math.inf
                    self._queries.put(key)
                if entry.values:
                    found[key] = entry.values[0]
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)
        return found

    def _answer_queries(self) -> None:
        while not self._stopping.is_set():
            key = self._queries.get()
            if key is not None and not self._fetch_value(key):
                self._stopping.wait(RETRY_S)
                self._queries.put(key)

    def _fetch_value(self, key: str) -> bool:
        """Query one value.

        :returns: whether there was an answer.
        """
        try:
            value = self._fetch(key)
        except Exception as error:  # noqa: BLE001 - whatever others raise
            self._set_problem(
                f'{type(error).__name__}: {error}'.splitlines()[0]
            )
            return False
        self._set_problem('')
        if self._store_value(key, value):
            self._on_found(key)
        return True

    def _store_value(self, key: str, value: Value | None) -> bool:
        """Store an answer.

        :returns: whether the value changed.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return False
            entry.due_s = self._clock() + self._lifetime_s
            before = entry.values
            entry.values = () if value is None else (value,)
            return entry.values != before

    def _set_problem(self, problem: str) -> None:
        """Store a problem; log its begin and its end once."""
        if problem and not self._problem:
            LOG.warning(
                '%s: query failed: %s; it is repeated', self._what, problem
            )
        elif self._problem and not problem:
            LOG.info('%s: queries succeed again', self._what)
        self._problem = problem
