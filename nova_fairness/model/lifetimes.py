# SPDX-License-Identifier: Apache-2.0

"""Lifetimes of past servers, from which planners estimate future ends."""

from nova_fairness.model import cluster

_REMEMBERED = 100
"""Largest number of lifetimes that are stored per kind."""


class Lifetimes:
    """Lifetimes of the last ended servers of each kind."""

    def __init__(self) -> None:
        # Seconds by server, the newest last.
        self._lasted: dict[cluster.Kind, dict[str, float]] = {}
        self._sorted: dict[cluster.Kind, tuple[float, ...]] = {}

    def learn(self, kind: cluster.Kind, server: str, lasted_s: float) -> None:
        """Add the lifetime of a server that ended.

        :param lasted_s: seconds; a value below 0, from clocks that differ,
            counts as 0.
        """
        lasted = self._lasted.setdefault(kind, {})
        # A server that is reported again keeps its first place.
        lasted.setdefault(server, max(lasted_s, 0.0))
        if len(lasted) > _REMEMBERED:
            del lasted[next(iter(lasted))]
        self._sorted[kind] = tuple(sorted(lasted.values()))

    def by_kind(self) -> dict[cluster.Kind, tuple[float, ...]]:
        """Return the lifetimes in seconds, the shortest first, by kind."""
        return dict(self._sorted)
