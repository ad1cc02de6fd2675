# SPDX-License-Identifier: Apache-2.0

"""Values of another service: asked for beside the rounds, and kept."""

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
"""Seconds after which an unanswered question is asked again."""

MOST = 100_000
"""Number of values kept; the one not wanted for the longest goes first."""

_END_S = 2.0


@dataclasses.dataclass
class _Entry(Generic[Value]):
    """Value of one key, and its age.

    :ivar values: the value, if there is one.
    :ivar due_s: when to ask again; infinite while the question is under way.
    """

    values: tuple[Value, ...]
    due_s: float


class Lookup(Generic[Value]):
    """Asks on a thread of its own; readers never wait.

    :param what: name of the values, for the log.
    :param fetch: asks for the value of one key; may block, and raise
        anything; ``None`` if there is none.
    :param lifetime_s: seconds after which a value that is wanted is asked for
        again.
    :param on_found: called with the key, on that thread, when its value has
        come or changed.
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
        self._questions: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ''

    @property
    def problem(self) -> str:
        """Why the newest question was not answered; empty if it was."""
        return self._problem

    def start(self) -> None:
        """Begin to ask."""
        self._thread = threading.Thread(
            target=self._ask_all,
            name=self._what.replace(' ', '-'),
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop asking; a question under way is left behind."""
        self._stopping.set()
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(_END_S)

    def known(self, keys: Iterable[str]) -> Mapping[str, Value]:
        """Values known now; the rest is asked for.

        :param keys: those that are wanted.
        :returns: values of those that have one.
        """
        now_s = self._clock()
        found: dict[str, Value] = {}
        with self._lock:
            for key in keys:
                entry = self._entries.setdefault(key, _Entry((), now_s))
                self._entries.move_to_end(key)
                if entry.due_s <= now_s:
                    entry.due_s = math.inf
                    self._questions.put(key)
                if entry.values:
                    found[key] = entry.values[0]
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)
        return found

    def _ask_all(self) -> None:
        while not self._stopping.is_set():
            key = self._questions.get()
            if key is not None and not self._ask(key):
                self._stopping.wait(RETRY_S)
                self._questions.put(key)

    def _ask(self, key: str) -> bool:
        """Ask for one value.

        :returns: whether there was an answer, a value or none.
        """
        try:
            value = self._fetch(key)
        except Exception as error:  # noqa: BLE001 - whatever others raise
            self._note(f'{type(error).__name__}: {error}'.splitlines()[0])
            return False
        self._note('')
        if self._keep(key, value):
            self._on_found(key)
        return True

    def _keep(self, key: str, value: Value | None) -> bool:
        """Take over an answer.

        :returns: whether the value is another one than before.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return False
            entry.due_s = self._clock() + self._lifetime_s
            before = entry.values
            entry.values = () if value is None else (value,)
            return entry.values != before

    def _note(self, problem: str) -> None:
        """Log a change for the worse or the better, once."""
        if problem and not self._problem:
            LOG.warning('%s cannot be looked up: %s', self._what, problem)
        elif self._problem and not problem:
            LOG.info('%s can be looked up again', self._what)
        self._problem = problem
