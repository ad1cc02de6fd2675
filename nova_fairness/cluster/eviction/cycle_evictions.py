# SPDX-License-Identifier: Apache-2.0

"""Evictions of one cycle: read once, and kept up to date.

A change by this process is visible at once in each of its threads. A change by
another process is visible in the next cycle. Until then steps from the old
state are refused, since each step names the version from which it starts.
"""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import threading

from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction

REMEMBERED_S = 86400.0
"""Seconds for which the evictions of all servers are read."""


class CycleEvictions:
    """Latest evictions of servers: the newest of each server counts."""

    def __init__(self) -> None:
        self._known: dict[str, eviction.Eviction] = {}
        self._lock = threading.Lock()

    def record(self, leave: eviction.Eviction) -> None:
        """Record a change, unless a newer one is known.

        Threads call this after they have written their changes.
        """
        with self._lock:
            before = self._known.get(leave.server)
            if before is None or _version_key(before) < _version_key(leave):
                self._known[leave.server] = leave

    def in_states(
        self, states: Collection[eviction.EvictionState]
    ) -> dict[str, eviction.Eviction]:
        """Evictions in some live states by UUID of the server, the earliest
        first.
        """
        return {
            each.server: each
            for each in self._sorted_evictions()
            if each.state in states
        }

    def live_or_changed_since(
        self, since: float
    ) -> dict[str, eviction.Eviction]:
        """Live evictions, and evictions whose state changed recently.

        :param since: seconds of the epoch, at most :data:`REMEMBERED_S` ago.
        """
        return {
            each.server: each
            for each in self._sorted_evictions()
            if each.state in eviction.LIVE or each.changed_at >= since
        }

    def of_servers(
        self, servers: Collection[str]
    ) -> dict[str, eviction.Eviction]:
        """Evictions of some servers, by UUID; servers without an eviction are
        missing.

        :param servers: UUIDs of servers that leave, left recently, or were
            named when the evictions were read.
        """
        with self._lock:
            return {
                uuid: self._known[uuid]
                for uuid in servers
                if uuid in self._known
            }

    def _sorted_evictions(self) -> list[eviction.Eviction]:
        with self._lock:
            known = list(self._known.values())
        return sorted(known, key=lambda each: (each.at, each.server))


@contextlib.contextmanager
def follow_evictions(
    leaves: leaves_module.EvictionTable, servers: Collection[str], now: float
) -> Iterator[CycleEvictions]:
    """Read the evictions once, and follow the changes by this process.

    :param servers: UUIDs of servers that are read even if they left long ago.
    :param now: seconds of the epoch.
    :raises StoreError: if the evictions cannot be read.
    """
    made = CycleEvictions()
    # Listen before reading, so that no change is missed in between.
    with leaves.temporary_listener(made.record):
        for each in leaves.live_or_changed_since(
            now - REMEMBERED_S, servers
        ).values():
            made.record(each)
        yield made


def _version_key(leave: eviction.Eviction) -> tuple[int, int]:
    return leave.turn, leave.version
