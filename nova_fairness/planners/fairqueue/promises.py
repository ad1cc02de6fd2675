# SPDX-License-Identifier: Apache-2.0

"""Units that room was promised to, while a plan is made.

What is promised to a unit is nobody else's. Where other hosts have room that
nobody who waits may use before it, a unit starts there instead: then nobody
need leave for it.
"""

from collections.abc import Iterator

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import room as room_module


class Promises:
    """What was promised, and to whom.

    :param snapshot: of the cloud.
    :param room: that is left.
    """

    def __init__(
        self, snapshot: cluster.ClusterSnapshot, room: room_module.Room
    ) -> None:
        self._promised = snapshot.promised
        self._leaving = len(snapshot.leaving)
        self._room = room
        self._left: list[tuple[order.Unit, room_module.Placement]] = []

    def of(self, unit: order.Unit) -> room_module.Placement | None:
        """Rows of the hosts that a unit was promised; ``None`` without."""
        promised = [
            self._promised.get(each.uuid, ()) for each in unit.requests
        ]
        placement = tuple(self._room.hosts.rows(names) for names in promised)
        # A host that is gone keeps no promise.
        if any(
            len(rows) != len(each.servers)
            for rows, each in zip(placement, unit.requests, strict=True)
        ):
            return None
        return placement

    def keep(self, unit: order.Unit, placement: room_module.Placement) -> None:
        """Let a unit wait for hosts that are not free yet."""
        self._room.take(unit, placement)
        self._left.append((unit, placement))

    def elsewhere(
        self, *, is_preemptible: bool
    ) -> Iterator[tuple[order.Unit, room_module.Placement]]:
        """Yield units that start on other hosts, which they are given.

        :param is_preemptible: whether those that are, or all others.
        """
        for unit, placement in list(self._left):
            if unit.is_preemptible is not is_preemptible:
                continue
            found = self._room.find(unit)
            if found is not None:
                self._left.remove((unit, placement))
                self._room.give_back(unit, placement)
                self._room.take(unit, found)
                yield unit, found

    def waiting(self) -> list[tuple[order.Unit, reason.Why]]:
        """Units that wait for what they were promised, and why."""
        why = reason.why(
            reason.Reason.ROOM_IS_MADE, servers=float(self._leaving)
        )
        return [(unit, why) for unit, _ in self._left]

    def reserved(self) -> dict[str, cluster.Reservation]:
        """Hosts that are kept for those, by UUID of the request."""
        return {
            each.uuid: cluster.Reservation(
                self._room.names(np.concatenate(placement))
            )
            for unit, placement in self._left
            for each in unit.requests
        }
