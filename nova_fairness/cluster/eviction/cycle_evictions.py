# SPDX-License-Identifier: Apache-2.0

"""Evictions of one cycle: read once from the store, and then kept up to date.

A change by this process is visible at once in all its threads. A change by
another process is visible in the next cycle. Until then the store refuses
steps from the old state, because each step names the version from which it
starts.
"""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import threading

from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction

REMEMBERED_S = 86400.0
"""Age, in seconds, of the oldest changed evictions that are read for all
servers.
"""


class CycleEvictions:
    """The newest eviction of each server."""

    def __init__(self) -> None:
        self._known: dict[str, eviction.Eviction] = {}
        self._lock = threading.Lock()

    def record(self, leave: eviction.Eviction) -> None:
        """Record a changed eviction, unless a newer version of it is known.

        Threads call this after they have stored their changes.
        """
        with self._lock:
            before = self._known.get(leave.server)
            if before is None or _version_key(before) < _version_key(leave):
                self._known[leave.server] = leave

    def in_states(
        self, states: Collection[eviction.EvictionState]
    ) -> dict[str, eviction.Eviction]:
        """Return evictions in some live states by UUID of the server, the
        earliest first.
        """
        return {
            each.server: each
            for each in self._sorted_evictions()
            if each.state in states
        }

    def live_or_changed_since(
        self, since: float
    ) -> dict[str, eviction.Eviction]:
        """Return live evictions, and evictions whose state changed since a
        time, by UUID of the server.

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
        """Return the evictions of some servers, by UUID; servers without an
        eviction are missing.

        :param servers: UUIDs of servers that are being evicted, were evicted
            recently, or were named when the evictions were read.
        """
        with self._lock:
            return {
                uuid: self._known[uuid]
                for uuid in servers
                if uuid in self._known
            }

    def _sorted_evictions(self) -> list[eviction.Eviction]:
        """Return all evictions, sorted by the time of their next action."""
        with self._lock:
            known = list(self._known.values())
        return sorted(known, key=lambda each: (each.at, each.server))


@contextlib.contextmanager
def follow_evictions(
    leaves: leaves_module.EvictionTable, servers: Collection[str], now: float
) -> Iterator[CycleEvictions]:
    """Read the evictions once, and update them after each change by this
    process.

    :param leaves: table of evictions.
    :param servers: UUIDs of servers whose evictions are read even if they
        ended long ago.
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
    """Return a key that grows with each version of a server's evictions."""
    return leave.turn, leave.version
