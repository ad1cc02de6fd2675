# SPDX-License-Identifier: Apache-2.0

"""Guaranteed parts start at once; what is beyond waits for its turn.

A plan is made in rounds. In a round, every unit that fits into what its
project is guaranteed starts if there is room for it. All others are gone
through in order: who fits starts; the first that would fit but for what is in
use now keeps, in thought, what it waits for, so that nobody behind it can
take it: its part of what is shared, room below its project's ceiling, and the
hosts that come closest to its need. Those behind use what is left. Rounds
follow until one starts nothing, so that a state in which nothing is to be
done stays as it is.
"""

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import parts as parts_module
from nova_fairness.planners.fairqueue import room as room_module

_OLDEST_FIRST = order_module.OldestFirst()

_Told = tuple[order_module.Unit, reason.Why]
"""A unit that waits, and what for."""

_Judged = tuple[order_module.Unit, reason.Why | room_module.Lacking]
"""The same while rounds go on."""


def plan(
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order = _OLDEST_FIRST,
) -> cluster.Plan:
    """Say which requests start now and where, and why the others wait.

    :param snapshot: of the cloud.
    :param now: seconds of the epoch.
    :param order: who is next of those beyond their guaranteed part.
    :raises PluginMisbehaved: if the order failed, or lost or doubled a
        request.
    """
    held = [
        each
        for each in snapshot.requests
        if each.state is request_model.State.HELD
    ]
    late = sorted(
        (each for each in held if _late(each, now)),
        key=lambda each: each.uuid,
    )
    waiting = [each for each in held if not _late(each, now)]
    arranged = _arranged(waiting, snapshot, now, order)
    expired = tuple(_expired(each, now) for each in late)
    started, units = _Rounds(snapshot).run(order_module.units(arranged))
    return cluster.Plan((*expired, *started), _positions(units))


def _arranged(
    waiting: list[request_model.Request],
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order,
) -> list[request_model.Request]:
    name = type(order).__name__
    try:
        arranged = list(order.arrange(waiting, snapshot, now))
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'the order {name} failed: {type(error).__name__}: {error}'
        ) from error
    if sorted(each.uuid for each in arranged) != sorted(
        each.uuid for each in waiting
    ):
        raise exception.PluginMisbehaved(
            f'the order {name} must give back each of {len(waiting)} requests'
            f' once, and gave {len(arranged)}'
        )
    return arranged


class _Rounds:
    """Rounds until nothing more starts.

    :param snapshot: of the cloud.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._parts = parts_module.Parts(snapshot)
        self._room = room_module.Room(snapshot)
        self._never: dict[str, reason.Why | None] = {}
        self._actions: list[cluster.Action] = []
        self._keeper: order_module.Unit | None = None

    def run(
        self, units: list[order_module.Unit]
    ) -> tuple[list[cluster.Action], list[_Told]]:
        """The starts, and the units that wait with their reasons."""
        while True:
            waiting = self._round(units)
            if len(waiting) == len(units):
                told = [
                    (each, why() if callable(why) else why)
                    for each, why in waiting
                ]
                return self._actions, told
            units = [each for each, _ in waiting]

    def _round(self, units: list[order_module.Unit]) -> list[_Judged]:
        self._parts.forget()
        self._room.forget()
        self._keeper = None
        waiting: list[_Judged] = []
        before = 0
        for unit in [each for each in units if not self._at_once(each)]:
            why = self._in_turn(unit, before)
            if why:
                waiting.append((unit, why))
                before += len(unit.requests)
        return waiting

    def _at_once(self, unit: order_module.Unit) -> bool:
        """Start a unit within its project's guaranteed part, if it fits."""
        if not self._parts.guaranteed(unit) or self._hopeless(unit):
            return False
        return self._started(unit)

    def _in_turn(
        self, unit: order_module.Unit, before: int
    ) -> reason.Why | room_module.Lacking | None:
        """Start a unit, or say why it waits."""
        never = self._hopeless(unit)
        if never:
            return never
        why: reason.Why | room_module.Lacking | None
        why = self._parts.lacking(unit)
        if not why and not self._parts.behind(unit):
            if self._started(unit):
                return None
            why = self._room.lacking(unit)
        if not why:
            return reason.why(reason.Reason.BEHIND_OTHERS, before=before)
        if not self._keeper:
            self._keeper = unit
            self._parts.keep(unit)
            self._room.keep(unit)
        return why

    def _hopeless(self, unit: order_module.Unit) -> reason.Why | None:
        """Say what keeps a unit from starting whatever others have."""
        first = unit.requests[0].uuid
        if first not in self._never:
            self._never[first] = self._room.never(unit)
        found = (self._never[first], self._parts.never(unit))
        reasons = [each for each in found if each]
        return reason.first(reasons) if reasons else None

    def _started(self, unit: order_module.Unit) -> bool:
        placement = self._room.find(unit)
        if placement is None:
            return False
        self._room.take(unit, placement)
        self._parts.take(unit)
        for each, rows in zip(unit.requests, placement, strict=True):
            action = cluster.Action(
                cluster.Verb.START,
                each.uuid,
                each.version,
                self._room.names(rows),
                reason.why(reason.Reason.ROOM_KEPT),
            )
            self._actions.append(action)
        return True


def _late(request: request_model.Request, now: float) -> bool:
    return request.expires_at is not None and request.expires_at <= now


def _expired(request: request_model.Request, now: float) -> cluster.Action:
    why = reason.why(
        reason.Reason.WAITED_TOO_LONG, waited_s=max(now - request.asked_at, 0)
    )
    return cluster.Action(
        cluster.Verb.EXPIRE, request.uuid, request.version, (), why
    )


def _positions(waiting: list[_Told]) -> dict[str, cluster.Waiting]:
    requests = [(each, why) for unit, why in waiting for each in unit.requests]
    return {
        each.uuid: cluster.Waiting(position, why)
        for position, (each, why) in enumerate(requests, 1)
    }
