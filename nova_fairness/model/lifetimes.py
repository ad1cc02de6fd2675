# SPDX-License-Identifier: Apache-2.0

"""How long servers lasted, by which planners foresee how long others will."""

from nova_fairness.model import cluster

_REMEMBERED = 100
"""Servers of a kind."""


class Lifetimes:
    """How long the last servers of each kind lasted that ended."""

    def __init__(self) -> None:
        # Seconds by server, the newest last.
        self._lasted: dict[cluster.Kind, dict[str, float]] = {}
        self._sorted: dict[cluster.Kind, tuple[float, ...]] = {}

    def learn(self, kind: cluster.Kind, server: str, lasted_s: float) -> None:
        """Take note of a server that ended.

        :param lasted_s: seconds; below 0, as clocks differ, it counts as 0.
        """
        lasted = self._lasted.setdefault(kind, {})
        # Told of again it is no older than those in between.
        lasted.setdefault(server, max(lasted_s, 0.0))
        if len(lasted) > _REMEMBERED:
            del lasted[next(iter(lasted))]
        self._sorted[kind] = tuple(sorted(lasted.values()))

    def by_kind(self) -> dict[cluster.Kind, tuple[float, ...]]:
        """Seconds, the shortest first."""
        return dict(self._sorted)
