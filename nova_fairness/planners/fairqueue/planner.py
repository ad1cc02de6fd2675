# SPDX-License-Identifier: Apache-2.0

"""Guaranteed parts start at once; what is beyond waits for its turn.

Preemptible requests come after all others, and have parts of their own.

A plan is made in rounds. In a round, every unit that fits into what its
project is guaranteed starts if there is room for it. All others are gone
through in order: who fits starts; the first that would fit but for what is in
use now gets a reservation: its part of what is shared, room below its
project's ceiling, and hosts. Those behind use what is left. Rounds follow
until one starts nothing, so that a state in which nothing is to be done stays
as it is.

Those who ask for what they own, and others borrow now, come before those who
borrow, and get the reservation: who lends gets it back first.

Whoever room is made for has a promise: it starts on its hosts as soon as they
are free, and nobody else does; or on others, if they have room that nobody
else takes.

If enough servers are expected to end, a reservation is for the first moment at
which they leave room for it. Others start on what is reserved if they are
expected to end before, or leave enough beside it (EASY backfill). Else, and
once a request has waited for long, the hosts that come closest to its need are
kept for it alone. Nobody but guaranteed parts starts there, so what it lacks
on the host that comes closest only gets less: if servers end, it starts,
however wrong the ends were that were expected.
"""

from collections.abc import Mapping
import dataclasses
import functools
import math

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import alternatives
from nova_fairness.planners import placement
from nova_fairness.planners.fairqueue import alike as alike_module
from nova_fairness.planners.fairqueue import ends as ends_module
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import parts as parts_module
from nova_fairness.planners.fairqueue import promises as promises_module
from nova_fairness.planners.fairqueue import room as room_module
from nova_fairness.shares import budgets
from nova_fairness.shares import ceilings
from nova_fairness.shares import tree as tree_module
from nova_fairness.shares import windows

_R = reason.Reason
_OLDEST_FIRST = order_module.OldestFirst()


@dataclasses.dataclass(frozen=True, slots=True)
class Backfill:
    """Limits of starts before the first that does not fit.

    :ivar depth: number of units that are tried behind it, >= 0.
    :ivar patience_s: seconds that it may have waited for which others start
        on hosts that are reserved for it, >= 0.
    """

    depth: int = 1000
    patience_s: float = 3600.0


_USUAL = Backfill()

_Told = tuple[order_module.Unit, reason.Why]
"""A unit that waits, and what for."""

_Judged = tuple[order_module.Unit, reason.Why | reason.Lazy]
"""The same while rounds go on."""


def plan(
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order = _OLDEST_FIRST,
    backfill: Backfill = _USUAL,
    rule: placement.Rule = placement.fullest,
    *,
    tells: bool = True,
) -> cluster.Plan:
    """Say which requests start now and where, and why the others wait.

    :param snapshot: of the cloud.
    :param now: seconds of the epoch.
    :param order: who is next of those beyond their guaranteed part.
    :param backfill: who may start before the first that does not fit.
    :param rule: says which of the hosts with room a server is put on.
    :param tells: whether factors of the order are told.
    :raises PluginMisbehaved: if the order failed, lost or doubled a request,
        or told a factor that is no number.
    """
    snapshot = alternatives.chosen(snapshot)
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
    arranged, told = _by_bands(waiting, snapshot, now, order, tells)
    expired = tuple(_expired(each, now) for each in late)
    rounds = _Rounds(snapshot, now, backfill, rule)
    started, units = rounds.run(order_module.units(arranged))
    waits = [(each, why) for unit, why in units for each in unit.requests]
    passed = alternatives.passed(waits, snapshot)
    places = _positions(waits, passed, told, rounds.reserved)
    return cluster.Plan((*expired, *passed, *started), places)


def _by_bands(
    waiting: list[request_model.Request],
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order,
    tells: bool,
) -> tuple[list[request_model.Request], dict[str, cluster.Factors]]:
    """Those of the first band, then those of the next, and factors of all."""
    arranged: list[request_model.Request] = []
    factors: dict[str, cluster.Factors] = {}
    for band in request_model.Band:
        those = [each for each in waiting if each.band is band]
        if not those:
            continue
        seen = snapshot
        if band is request_model.Band.PREEMPTIBLE:
            seen = _with_preemptible(snapshot)
        arranged += order_module.arranged(those, seen, now, order)
        if tells:
            factors.update(order_module.factors(those, seen, now, order))
    return arranged, factors


def _with_preemptible(
    snapshot: cluster.ClusterSnapshot,
) -> cluster.ClusterSnapshot:
    """The cloud in which what preemptible servers have counts as granted."""
    granted = dict(snapshot.granted)
    for name, part in tree_module.preemptible_parts(snapshot).items():
        granted[name] = granted.get(name, 0.0) + part
    return dataclasses.replace(snapshot, granted=granted)


class _Rounds:
    """Rounds until nothing more starts.

    :param snapshot: of the cloud.
    :param now: seconds of the epoch.
    :param backfill: who may start before the first that does not fit.
    :param rule: says which of the hosts with room a server is put on.

    :ivar reserved: by UUID of the requests that room is reserved for.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        now: float,
        backfill: Backfill,
        rule: placement.Rule,
    ) -> None:
        self._snapshot = snapshot
        self._now = now
        self._backfill = backfill
        self._parts = parts_module.Parts(snapshot)
        self._room = room_module.Room(snapshot, rule)
        self._ends = ends_module.Ends(snapshot, now, self._room.hosts)
        self._spending = budgets.Spending(snapshot.budgets, snapshot.accounts)
        self._ceilings = ceilings.Ceilings(snapshot)
        self._openings = windows.Openings(snapshot.accounts, now)
        self._promises = promises_module.Promises(snapshot, self._room)
        self.reserved: dict[str, cluster.Reservation] = {}
        self._alike = alike_module.Alike((), ())
        self._never: dict[int, reason.Why | None] = {}
        self._actions: list[cluster.Action] = []
        self._reservation: cluster.Reservation | None = None
        self._begun = self._tried = 0

    def run(
        self, units: list[order_module.Unit]
    ) -> tuple[list[cluster.Action], list[_Told]]:
        """The starts, and the units that wait with their reasons."""
        self._parts.expect(units)
        units = self._keep_promises(units)
        self._alike = alike_module.Alike(units, self._snapshot.accounts)
        while True:
            self._begun = len(self._actions)
            waiting = self._round(units)
            if len(self._actions) == self._begun:
                told = [
                    (each, why() if callable(why) else why)
                    for each, why in waiting
                ]
                self.reserved.update(self._promises.reserved())
                return self._actions, [*self._promises.waiting(), *told]
            left = {each.requests[0].uuid for each, _ in waiting}
            units = [each for each in units if each.requests[0].uuid in left]

    def _keep_promises(
        self, units: list[order_module.Unit]
    ) -> list[order_module.Unit]:
        """Start those with a promise whose hosts are free; the others wait.

        What they wait for is nobody else's.

        :returns: units without a promise.
        """
        if not self._snapshot.promised:
            return units
        others: list[order_module.Unit] = []
        for unit in units:
            placement = self._promises.of(unit)
            if placement is None:
                others.append(unit)
            elif self._room.is_free(unit, placement):
                self._start(unit, placement, is_short=False)
            else:
                self._promises.keep(unit, placement)
                self._parts.take(unit)
                self._charge(unit)
        return others

    def _start_elsewhere(self, *, is_preemptible: bool) -> None:
        """Start those with a promise that others leave room for by now."""
        for unit, rows in self._promises.elsewhere(
            is_preemptible=is_preemptible
        ):
            self._begin(unit, rows)

    def _round(self, units: list[order_module.Unit]) -> list[_Judged]:
        self._parts.forget()
        self._room.forget()
        self._alike.forget()
        self._reservation, self._tried = None, 0
        self.reserved.clear()
        waiting: list[_Judged] = []
        before = 0
        left = [each for each in units if not self._at_once(each)]
        is_normal = True
        for unit in self._parts.owners_first(left):
            if is_normal and unit.is_preemptible:
                is_normal = False
                self._start_elsewhere(is_preemptible=False)
            why = self._in_turn(unit, before)
            if why:
                waiting.append((unit, why))
                before += len(unit.requests)
        for is_preemptible in (False, True):
            self._start_elsewhere(is_preemptible=is_preemptible)
        return waiting

    def _at_once(self, unit: order_module.Unit) -> bool:
        """Start a unit within its project's guaranteed part, if it fits."""
        kind = self._alike.of(unit)
        if kind in self._alike.sharing:
            return False
        if self._parts.guaranteed(unit):
            return not self._hopeless(unit) and self._started(unit, False)
        self._alike.sharing.add(kind)
        return False

    def _in_turn(
        self, unit: order_module.Unit, before: int
    ) -> reason.Why | reason.Lazy | None:
        """Start a unit, or say why it waits."""
        depth = self._backfill.depth
        is_beyond = self._reservation is not None and self._tried >= depth
        beyond = functools.partial(
            reason.why, _R.BEYOND_DEPTH, before=before, depth=depth
        )
        if is_beyond and len(self._actions) > self._begun:
            # Nobody behind starts, and what is told of another round is.
            return beyond
        why = self._held_back(unit)
        if why is None and is_beyond:
            return beyond
        if why is None and self._reservation:
            self._tried += 1
        if why is None:
            why = self._tried_out(unit)
        if why is alike_module.BEHIND:
            return functools.partial(reason.why, why, before=before)
        return why

    def _held_back(
        self, unit: order_module.Unit
    ) -> alike_module.Failed | None:
        """Say what keeps a unit from being tried at all."""
        kind, known = self._alike.of(unit), self._alike.held_back
        if kind in known or kind in self._alike.tried:
            return known.get(kind)
        never = self._hopeless(unit)
        borrows = never and never.reason is _R.OVER_BORROWING_LIMIT
        if borrows and self._parts.owe(unit):
            self._alike.forget()
        is_owed = not never and self._parts.owes(unit)
        why = alike_module.BEHIND if is_owed else never
        if why:
            known[kind] = why
        else:
            self._alike.tried.add(kind)
        return why

    def _tried_out(
        self, unit: order_module.Unit
    ) -> alike_module.Failed | None:
        """Start a unit if there is room, or say what it lacks."""
        kind, known = self._alike.of(unit), self._alike.failed
        if kind in known:
            return known[kind]
        why: alike_module.Failed | None = self._parts.lacking(unit)
        is_short = self._ends_before(unit)
        if not why and (is_short or not self._parts.behind(unit)):
            if self._started(unit, is_short):
                return None
            why = self._room.lacking(unit, is_short)
        why = why or alike_module.BEHIND
        if not self._reservation and why is not alike_module.BEHIND:
            self._reservation = self._reserved(unit)
            self.reserved.update(
                (each.uuid, self._reservation) for each in unit.requests
            )
            self._alike.forget()
        else:
            known[kind] = why
        return why

    def _ends_before(self, unit: order_module.Unit) -> bool:
        """Tell whether a unit ends before what is reserved is needed."""
        if self._reservation is None or self._reservation.at is None:
            return False
        last = self._ends.last(unit)
        return last is not None and last <= self._reservation.at

    def _reserved(self, unit: order_module.Unit) -> cluster.Reservation:
        """Reserve room for a unit."""
        waited_s = self._now - min(each.asked_at for each in unit.requests)
        found = None
        if waited_s < self._backfill.patience_s:
            found = self._first_fit(unit)
        if found is None:
            self._parts.keep(unit, {})
            return cluster.Reservation(self._room.names(self._room.keep(unit)))
        at, placement = found
        hosts, projects = self._ends.until(at)
        self._parts.keep(unit, projects)
        rows = self._room.reserve(unit, placement, hosts)
        return cluster.Reservation(self._room.names(rows), at)

    def _first_fit(
        self, unit: order_module.Unit
    ) -> tuple[float, room_module.Placement] | None:
        """The first moment and hosts for a unit if servers end as expected.

        Halves the ends: what fits at one of them fits later, too.
        """
        times = self._ends.times()
        found = None
        first, last = 0, len(times)
        while first < last:
            middle = (first + last) // 2
            at = float(times[middle])
            hosts, projects = self._ends.until(at)
            placement = None
            if self._parts.fits_later(unit, projects):
                placement = self._room.find_later(unit, hosts)
            if placement is None:
                first = middle + 1
            else:
                found, last = (at, placement), middle
        return found

    def _hopeless(self, unit: order_module.Unit) -> reason.Why | None:
        """Say what keeps a unit from starting whatever others have."""
        kind = self._alike.of(unit)
        if kind not in self._never:
            # These two stay as they are while a plan is made.
            self._never[kind] = _first(
                self._room.never(unit), self._outside(unit)
            )
        return _first(
            self._never[kind],
            self._parts.never(unit),
            self._over_ceiling(unit),
            self._over_budget(unit),
        )

    def _outside(self, unit: order_module.Unit) -> reason.Why | None:
        """Say whose window is closed that opens last."""
        found = [
            closed
            for each in unit.requests
            if (closed := self._openings.closed(each.project, each.user))
        ]
        if not found:
            return None
        name, at = max(found, key=lambda closed: (closed[1], closed[0]))
        # Finer is another number in every cycle.
        hours = math.ceil((at - self._now) / 360.0) / 10
        return reason.why(reason.Reason.WINDOW_CLOSED, name, opens_h=hours)

    def _over_ceiling(self, unit: order_module.Unit) -> reason.Why | None:
        over = self._ceilings.passed(unit.requests)
        if over is None:
            return None
        return reason.why(
            reason.Reason.OVER_ACCOUNT_CEILING,
            f'{over.resource} of {over.account}',
            asked=over.asked,
            used=over.used,
            ceiling=over.ceiling,
        )

    def _over_budget(self, unit: order_module.Unit) -> reason.Why | None:
        lack = self._spending.lacking(unit.requests, self._now)
        if lack is None:
            return None
        return reason.why(
            reason.Reason.BUDGET_SPENT,
            lack.account,
            asked=round(lack.asked_s / budgets.HOUR_S, 1),
            left=round(lack.left_s / budgets.HOUR_S, 1),
        )

    def _charge(self, unit: order_module.Unit) -> None:
        for each in unit.requests:
            self._spending.take(each, self._now)
            self._ceilings.take(each)

    def _started(self, unit: order_module.Unit, is_short: bool) -> bool:
        placement = self._room.find(unit, is_short)
        if placement is None:
            return False
        self._start(unit, placement, is_short)
        return True

    def _start(
        self,
        unit: order_module.Unit,
        placement: room_module.Placement,
        is_short: bool,
    ) -> None:
        self._room.take(unit, placement, is_short)
        self._parts.take(unit, is_short)
        self._charge(unit)
        self._begin(unit, placement)

    def _begin(
        self, unit: order_module.Unit, placement: room_module.Placement
    ) -> None:
        self._alike.tried.clear()
        self._ends.start(unit, placement)
        for each, rows in zip(unit.requests, placement, strict=True):
            action = cluster.Action(
                cluster.Verb.START,
                each.uuid,
                each.version,
                self._room.names(rows),
                reason.why(reason.Reason.ROOM_KEPT),
            )
            self._actions.append(action)


def _first(*found: reason.Why | None) -> reason.Why | None:
    reasons = [each for each in found if each]
    return reason.first(reasons) if reasons else None


def _late(request: request_model.Request, now: float) -> bool:
    return request.expires_at is not None and request.expires_at <= now


def _expired(request: request_model.Request, now: float) -> cluster.Action:
    why = reason.why(
        reason.Reason.WAITED_TOO_LONG, waited_s=max(now - request.asked_at, 0)
    )
    return cluster.Action(
        cluster.Verb.EXPIRE, request.uuid, request.version, (), why
    )


def _positions(
    waiting: list[tuple[request_model.Request, reason.Why]],
    passed: list[cluster.Action],
    factors: Mapping[str, cluster.Factors],
    reserved: Mapping[str, cluster.Reservation],
) -> dict[str, cluster.Waiting]:
    gone = {each.request for each in passed}
    requests = [pair for pair in waiting if pair[0].uuid not in gone]
    return {
        each.uuid: cluster.Waiting(
            position,
            why,
            factors.get(each.uuid, {}),
            reserved.get(each.uuid),
        )
        for position, (each, why) in enumerate(requests, 1)
    }
