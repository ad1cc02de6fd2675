# SPDX-License-Identifier: Apache-2.0

"""Reservations of preemptors, while a plan is made.

A preemptor's reservation is for the preemptor alone. Later requests of its
server group have no part in it, and take none of it away. If other hosts have
room that no waiting unit may use before it, a preemptor starts there instead:
then no victim has to leave for it.
"""

from collections.abc import Iterator

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import order


class PreemptorReservations:
    """Reservations of preemptors.

    :param snapshot: state of the cloud.
    :param room: free room of the hosts.
    """

    def __init__(
        self, snapshot: cluster.ClusterSnapshot, room: capacity.FreeRoom
    ) -> None:
        self._promised = snapshot.promised
        self._leaving = len(snapshot.leaving)
        self._room = room
        self._left: list[tuple[order.Unit, capacity.Placement]] = []

    def divided(self, units: list[order.Unit]) -> list[order.Unit]:
        """Return units, in which preemptors with a reservation are separated
        from other requests.

        :returns: units of such preemptors are before the rest of their group.
        """
        if not self._promised:
            return units
        found = []
        for unit in units:
            if len(unit.requests) == 1:
                found.append(unit)
                continue
            kept: list[request_model.Request] = []
            left: list[request_model.Request] = []
            for each in unit.requests:
                (kept if self._has_all_hosts(each) else left).append(each)
            found += [
                order.Unit(tuple(those)) for those in (kept, left) if those
            ]
        return found

    def _has_all_hosts(self, each: request_model.Request) -> bool:
        """Whether all reserved hosts of a request exist."""
        rows = self._room.hosts.rows(self._promised.get(each.uuid, ()))
        return len(rows) == len(each.servers)

    def of(self, unit: order.Unit) -> capacity.Placement | None:
        """Return the rows of the reserved hosts of a unit; ``None`` without
        a reservation.
        """
        # If one of the hosts is gone, the promise is void.
        if not all(self._has_all_hosts(each) for each in unit.requests):
            return None
        return tuple(
            self._room.hosts.rows(self._promised[each.uuid])
            for each in unit.requests
        )

    def keep(self, unit: order.Unit, placement: capacity.Placement) -> None:
        """Let a unit wait for reserved hosts that are not free yet."""
        self._room.take(unit, placement)
        self._left.append((unit, placement))

    def elsewhere(
        self, *, is_preemptible: bool
    ) -> Iterator[tuple[order.Unit, capacity.Placement]]:
        """Yield units that can start now, with their hosts.

        They start on other hosts, or on their own ones if another preemptor
        that was promised room there starts elsewhere.

        :param is_preemptible: whether to return preemptible units, or others.
        """
        for unit, placement in list(self._left):
            if unit.is_preemptible is not is_preemptible:
                continue
            found = self._room.find(unit)
            self._room.give_back(unit, placement)
            if self._room.is_free(unit, placement):
                found = placement
            if found is None:
                self._room.take(unit, placement)
                continue
            self._left.remove((unit, placement))
            self._room.take(unit, found)
            yield unit, found

    def waiting(self) -> list[tuple[order.Unit, reason.Why]]:
        """Return the units that wait for their reserved hosts, and the
        reason.
        """
        why = reason.why(
            reason.Reason.ROOM_IS_MADE, servers=float(self._leaving)
        )
        return [(unit, why) for unit, _ in self._left]

    def reserved(self) -> dict[str, cluster.Reservation]:
        """Return the hosts that are reserved for waiting preemptors, by
        UUID of the request.
        """
        return {
            each.uuid: cluster.Reservation(
                self._room.names(np.concatenate(placement))
            )
            for unit, placement in self._left
            for each in unit.requests
        }
