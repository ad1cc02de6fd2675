# SPDX-License-Identifier: Apache-2.0

"""Quarantine of inputs that made a cycle fail; each is tried again later.

An input that raises an unexpected error must not stop other inputs. It enters
this table, is skipped, and is tried again after a pause that doubles with each
failure, up to an hour. Once an hour, the log shows the traceback of each class
of errors. Owners see :attr:`.Reason.QUARANTINED`, which does not contain the
error.

Some errors are caused by this process, its database or its broker, and not by
an input: :data:`PASSES` lists errors that quarantine no input.
"""

from collections.abc import Callable
import dataclasses
import enum
import threading
import time

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.runtime import quiet_log
from nova_fairness.runtime import retry_pauses

LOG = logging.getLogger(__name__)

MOST = 10_000
"""Largest number of entries; beyond it, those with the earliest next try
are removed.
"""

_TOLD = 100
"""Largest number of entries that the status lists."""

PASSES = (
    exception.Deposed,
    exception.StoreAway,
    exception.BrokerAway,
    exception.NotLeading,
)
"""Errors that would also occur with the next input, so that they quarantine
no input.
"""


class InputKind(enum.Enum):
    """Kinds of inputs in quarantine. The values are part of the API: do not
    change them.
    """

    REQUEST = 'request'
    MESSAGE = 'message'
    ACCOUNT = 'account'
    SERVER = 'server'
    HOST = 'host'
    ROW = 'row'
    PLUGIN = 'plugin'
    """A plugin; another plugin replaces it."""
    PART = 'part'
    """A part of a cycle, such as estimates; the other parts still run."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """An input that failed, with its number of failures.

    :ivar kind: kind of the input.
    :ivar name: UUID or name of the input.
    :ivar cause: class name of the error; its text is left out, because it may
        contain data of other owners.
    :ivar times: number of failures, >= 1.
    :ivar until: monotonic time of the next try, seconds.
    """

    kind: InputKind
    name: str
    cause: str
    times: int
    until: float

    @property
    def pause_s(self) -> float:
        """Return the seconds from the last failure to the next try."""
        return retry_pauses.pause_s(self.times)

    @property
    def why(self) -> reason.Why:
        """Return the reason that the owner of the input sees."""
        return reason.why(reason.Reason.QUARANTINED, again_s=self.pause_s)


class Quarantine:
    """Table of inputs that are in quarantine. Several threads may use it.

    :param monotonic: returns monotonic time, seconds.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: dict[tuple[InputKind, str], QuarantineEntry] = {}
        self._shown: dict[tuple[InputKind, str], float] = {}
        self._quiet = quiet_log.QuietLog(LOG.logger, monotonic)
        self._failures = dict.fromkeys((each.value for each in InputKind), 0)

    @property
    def is_empty(self) -> bool:
        """Whether the table has no entry."""
        return not self._entries

    def put(self, kind: InputKind, name: str, error: BaseException) -> None:
        """Quarantine an input that has just failed.

        A second failure during the pause, for example in an API call, does not
        prolong the pause.
        """
        now, cause = self._monotonic(), type(error).__name__
        with self._lock:
            self._failures[kind.value] += 1
            before = self._entries.get((kind, name))
            if before and now < before.until and before.cause == cause:
                return
            times = before.times + 1 if before else 1
            until = now + retry_pauses.pause_s(times)
            made = QuarantineEntry(kind, name, cause, times, until)
            self._entries[kind, name] = made
            self._remove_old_entries(now)
            # Clients can invent names: failures of new names do not fill the
            # log.
            shown = self._shown.get((kind, cause))
            is_news = shown is None or now - shown >= retry_pauses.LONGEST_S
            if is_news:
                self._shown[kind, cause] = now
        text = (
            f'{kind.value} {name}: set aside for {made.pause_s:.0f} s:'
            f' {cause}; all else goes on'
        )
        if is_news:
            LOG.error('%s', text, exc_info=error)
        else:
            self._quiet.warning(kind.value, name, text)

    def holds(self, kind: InputKind, name: str) -> bool:
        """Whether an input is in quarantine now."""
        entry = self._entries.get((kind, name))
        return entry is not None and self._monotonic() < entry.until

    def entry(self, kind: InputKind, name: str) -> QuarantineEntry | None:
        """Return the entry of an input; ``None`` if it did not fail."""
        return self._entries.get((kind, name))

    def names(self, kind: InputKind) -> frozenset[str]:
        """Return the names of all inputs of a kind that are in quarantine
        now.
        """
        return frozenset(each.name for each in self._current_entries(kind))

    def release(self, kind: InputKind, name: str) -> None:
        """Remove an input from the table, if the table contains it."""
        with self._lock:
            self._entries.pop((kind, name), None)

    def failures(self) -> dict[str, int]:
        """Return the number of failures, by kind of input."""
        with self._lock:
            return dict(self._failures)

    def counts(self) -> dict[str, int]:
        """Return the number of inputs that are in quarantine now, by kind."""
        return {
            each.value: len(self._current_entries(each)) for each in InputKind
        }

    def entries(self) -> list[queue.SetAside]:
        """Return the present entries for operators, the one with the most
        failures first.
        """
        now = self._monotonic()
        held = [
            each for kind in InputKind for each in self._current_entries(kind)
        ]
        held.sort(key=lambda each: (-each.times, each.kind.value, each.name))
        return [
            queue.SetAside(
                each.kind.value,
                each.name,
                each.cause,
                each.times,
                max(each.until - now, 0.0),
            )
            for each in held[:_TOLD]
        ]

    def _current_entries(self, kind: InputKind) -> list[QuarantineEntry]:
        if not self._entries:
            return []
        now = self._monotonic()
        with self._lock:
            return [
                each
                for each in self._entries.values()
                if each.kind is kind and now < each.until
            ]

    def _remove_old_entries(self, now: float) -> None:
        """Remove entries that have not failed again, and entries beyond the
        limit.
        """
        over = [
            key
            for key, each in self._entries.items()
            if not retry_pauses.is_relapse(each.times, now - each.until)
        ]
        for key in over:
            del self._entries[key]
        while len(self._entries) > MOST:
            first = min(self._entries, key=lambda k: self._entries[k].until)
            del self._entries[first]
