# SPDX-License-Identifier: Apache-2.0

"""Quarantine: inputs that made a cycle fail, to be tried again later.

An input that raises an unexpected error stops no other input. It enters this
table, is left out, and is tried again after a pause that doubles each time up
to an hour. The log has the traceback of each class of errors once an hour;
owners see :attr:`.Reason.QUARANTINED`, which does not show the error.

Some errors come from this process, its database or its broker, and not from an
input: :data:`PASSES` lists errors that quarantine no input.
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
"""Names that are remembered; beyond that, the next due are forgotten."""

_TOLD = 100
"""Names that the status lists."""

PASSES = (
    exception.Deposed,
    exception.StoreAway,
    exception.BrokerAway,
    exception.NotLeading,
)
"""Errors with which the next input would fail, too."""


class InputKind(enum.Enum):
    """Kinds of inputs in quarantine. The tokens are an interface."""

    REQUEST = 'request'
    MESSAGE = 'message'
    ACCOUNT = 'account'
    SERVER = 'server'
    HOST = 'host'
    ROW = 'row'
    PLUGIN = 'plugin'
    """A plugin; another one works in its place."""
    PART = 'part'
    """A part of a cycle, such as estimates; the other parts are done."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """An input that failed.

    :ivar kind: kind of the input.
    :ivar name: UUID or name.
    :ivar cause: class of the error; its text may show data of other owners.
    :ivar times: number of failures, >= 1.
    :ivar until: when it is tried again, monotonic seconds.
    """

    kind: InputKind
    name: str
    cause: str
    times: int
    until: float

    @property
    def pause_s(self) -> float:
        """Seconds from the last failure to the next try."""
        return retry_pauses.pause_s(self.times)

    @property
    def why(self) -> reason.Why:
        """Reason that its owner sees."""
        return reason.why(reason.Reason.QUARANTINED, again_s=self.pause_s)


class Quarantine:
    """The table of inputs in quarantine; threads may share it.

    :param monotonic: seconds that never go back.
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
        """Whether no input failed recently."""
        return not self._entries

    def put(self, kind: InputKind, name: str, error: BaseException) -> None:
        """Quarantine an input that just failed.

        A second failure during the pause, for example by a call, does not
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
            self._prune(now)
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
        """Entry of an input; ``None`` if it did not fail."""
        return self._entries.get((kind, name))

    def names(self, kind: InputKind) -> frozenset[str]:
        """Names of all inputs of a kind that are in quarantine now."""
        return frozenset(each.name for each in self._held(kind))

    def release(self, kind: InputKind, name: str) -> None:
        """Remove an input from the table, if it is there."""
        with self._lock:
            self._entries.pop((kind, name), None)

    def failures(self) -> dict[str, int]:
        """Number of failures by kind."""
        with self._lock:
            return dict(self._failures)

    def counts(self) -> dict[str, int]:
        """Number of inputs in quarantine now, by kind."""
        return {each.value: len(self._held(each)) for each in InputKind}

    def entries(self) -> list[queue.SetAside]:
        """Present entries, for operators; the most frequent failure first."""
        now = self._monotonic()
        held = [each for kind in InputKind for each in self._held(kind)]
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

    def _held(self, kind: InputKind) -> list[QuarantineEntry]:
        if not self._entries:
            return []
        now = self._monotonic()
        with self._lock:
            return [
                each
                for each in self._entries.values()
                if each.kind is kind and now < each.until
            ]

    def _prune(self, now: float) -> None:
        """Forget entries that did not fail again, and entries beyond the
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
