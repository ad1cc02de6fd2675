# SPDX-License-Identifier: Apache-2.0

"""Quarantine: inputs that made a cycle fail, to be tried again later.

An input that raises an unexpected error ends nothing for others. Its name
enters this table, it is left out while everything else goes on, and it is
tried again after a pause, which doubles each time up to an hour. The log has
the traceback of each class of errors once an hour; owners are told
:attr:`.Reason.QUARANTINED`, which shows nothing of the error.

Some errors are about this process, its database or its broker, and not about
an input: :data:`PASSES` names those that quarantine no input.
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
"""Names that are remembered; beyond it those that are due first are let go."""

_TOLD = 100
"""Names that the status shows."""

PASSES = (
    exception.Deposed,
    exception.StoreAway,
    exception.BrokerAway,
    exception.NotLeading,
)
"""Errors after which the next input would fare no better."""


class InputKind(enum.Enum):
    """Kinds of inputs in quarantine. The tokens are an interface."""

    REQUEST = 'request'
    MESSAGE = 'message'
    ACCOUNT = 'account'
    SERVER = 'server'
    HOST = 'host'
    ROW = 'row'
    PLUGIN = 'plugin'
    """Another one works in its place."""
    PART = 'part'
    """A part of a cycle, such as estimates: the others are done."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """Something that failed.

    :ivar kind: what it is.
    :ivar name: UUID or name.
    :ivar cause: class of the error; its text may show what others own.
    :ivar times: how often it failed, >= 1.
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
        """Reason that its owner is told."""
        return reason.why(reason.Reason.QUARANTINED, again_s=self.pause_s)


class Quarantine:
    """The table; safe to be used by threads.

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
        """Whether nothing failed of late."""
        return not self._entries

    def put(self, kind: InputKind, name: str, error: BaseException) -> None:
        """Set something aside that just failed.

        A second failure meanwhile, since others asked for it, does not prolong
        the pause.
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
            # One that names can be invented for fills no log.
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
        """Whether something is set aside now."""
        entry = self._entries.get((kind, name))
        return entry is not None and self._monotonic() < entry.until

    def entry(self, kind: InputKind, name: str) -> QuarantineEntry | None:
        """Something that failed; ``None`` if it did not."""
        return self._entries.get((kind, name))

    def names(self, kind: InputKind) -> frozenset[str]:
        """All of a kind that is set aside now."""
        return frozenset(each.name for each in self._held(kind))

    def release(self, kind: InputKind, name: str) -> None:
        """Forget that something failed; it may not have."""
        with self._lock:
            self._entries.pop((kind, name), None)

    def failures(self) -> dict[str, int]:
        """How often something failed, by kind."""
        with self._lock:
            return dict(self._failures)

    def counts(self) -> dict[str, int]:
        """How many are set aside now, by kind."""
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
        """Forget what did not fail again when it was tried, and the most."""
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
