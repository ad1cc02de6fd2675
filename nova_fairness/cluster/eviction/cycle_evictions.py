# SPDX-License-Identifier: Apache-2.0

"""Live evictions of one cycle: read once, and followed.

A change by this process is seen at once, in each of its threads. A change by
another process is seen in the next cycle. Until then steps on the old state
are refused, since each names the version that it goes on from.
"""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import threading

from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction

REMEMBERED_S = 86400.0
"""For which it is known of every server that it left."""


class CycleEvictions:
    """How far servers have left; the newest time of each counts."""

    def __init__(self) -> None:
        self._known: dict[str, eviction.Eviction] = {}
        self._lock = threading.Lock()

    def note(self, leave: eviction.Eviction) -> None:
        """Take note of a change; one that is older than what is known is not.

        Threads tell their changes after they have written them.
        """
        with self._lock:
            before = self._known.get(leave.server)
            if before is None or _age(before) < _age(leave):
                self._known[leave.server] = leave

    def found(
        self, states: Collection[eviction.EvictionState]
    ) -> dict[str, eviction.Eviction]:
        """Servers in some live states, those that are due first, by UUID."""
        return {
            each.server: each for each in self._all() if each.state in states
        }

    def lately(self, since: float) -> dict[str, eviction.Eviction]:
        """Servers that leave, and those that came into their state of late.

        :param since: seconds of the epoch, at most :data:`REMEMBERED_S` ago.
        """
        return {
            each.server: each
            for each in self._all()
            if each.state in eviction.LIVE or each.changed_at >= since
        }

    def of(self, servers: Collection[str]) -> dict[str, eviction.Eviction]:
        """How far some servers have left, by UUID; others are not known.

        :param servers: which leave, left of late, or were named when it was
            read.
        """
        with self._lock:
            return {
                uuid: self._known[uuid]
                for uuid in servers
                if uuid in self._known
            }

    def _all(self) -> list[eviction.Eviction]:
        with self._lock:
            known = list(self._known.values())
        return sorted(known, key=lambda each: (each.at, each.server))


@contextlib.contextmanager
def followed(
    leaves: leaves_module.Leaves, servers: Collection[str], now: float
) -> Iterator[CycleEvictions]:
    """Read the servers that leave once, and follow changes by this process.

    :param servers: also read if they left long ago.
    :param now: seconds of the epoch.
    :raises StoreError: if it cannot be read.
    """
    made = CycleEvictions()
    # Before it is read: no change falls in between.
    with leaves.listening(made.note):
        for each in leaves.since(now - REMEMBERED_S, servers).values():
            made.note(each)
        yield made


def _age(leave: eviction.Eviction) -> tuple[int, int]:
    return leave.turn, leave.version
