# SPDX-License-Identifier: Apache-2.0

"""Planner of the queue: requests within guaranteed parts start at once; others
start in order.

Preemptible requests come after all others, and have limits of their own.

A plan is made in rounds. In a round, every unit that fits into its project's
guaranteed part starts if there is room for it. All others are tried in order.
A unit that fits starts. The first unit that does not fit only because of
present use gets a reservation: its part of the shared amounts, room below its
project's ceiling, and hosts. Units behind it use the rest. Rounds follow until
a round starts no unit. So a plan for the resulting state would start no unit
either.

Units that ask for amounts that their accounts own, and that others borrow now,
come before units that borrow. They get the reservation: lenders get their own
amounts back first.

A request that is held is ignored: it has no reservation and does not delay
other requests. Requests that operators put first come before all others of
their priority class, also before guaranteed parts and before lenders.

A preemptor has a reservation of its own. It starts on its hosts as soon as
they are free, and no other unit starts there. It may start on other hosts if
they have room that no other unit takes.

If enough servers have known ends, a reservation is for the first time at which
these ends leave enough room. Other units start on the reserved hosts if their
known ends are before this time, or if there is enough room for both (EASY
backfill). Only guaranteed parts may delay the reserved unit. If not enough
servers have known ends, or these are far in the future, expected ends count in
the same way. If no end is expected, or if a request has waited long for
expected ends, the hosts closest to its need are kept for it alone. These are
the hosts with the least lack after all servers with known ends have left. Only
guaranteed parts start there, so the lack on the closest host can only fall.
When servers end, the request starts, however wrong the expected ends were.

A unit that does not fit into an empty cloud gets no reservation, and does not
delay other units. If a server group does not fit as a whole, its oldest
requests that fit are a unit of their own; see :mod:`.divisions`. A unit that
is blocked by running members of its own group has a reservation only if the
ends of these members are known, or for a limited time if they are expected:
the members belong to the same owner.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import math

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import alternatives
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import divisions
from nova_fairness.planners.fairqueue import entitlements
from nova_fairness.planners.fairqueue import equivalence
from nova_fairness.planners.fairqueue import expected_ends
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import preemptor_reservations
from nova_fairness.shares import budgets
from nova_fairness.shares import ceilings
from nova_fairness.shares import tree as tree_module
from nova_fairness.shares import windows

_R = reason.Reason
_OLDEST_FIRST = order_module.OldestFirst()


@dataclasses.dataclass(frozen=True, slots=True)
class Backfill:
    """Limits of starts that are allowed before the first unit that does not
    fit.

    :ivar depth: largest number of units that are tried behind this unit, >= 0.
    :ivar patience_s: wait of this unit, seconds, >= 0, up to which others may
        start on its reserved hosts because of expected ends.
    """

    depth: int = 1000
    patience_s: float = 3600.0


_USUAL = Backfill()

_FAR_S = 86400.0
"""Seconds after which a known end is distant, so that expected ends count,
too.
"""

_OWN_MEMBERS = 5
"""Most units of a project per round that are blocked by members of their
groups and for which ends are searched."""

_Told = tuple[order_module.Unit, reason.Why]
"""A waiting unit, and the reason why it waits."""

_Judged = tuple[order_module.Unit, reason.Why | reason.Lazy]
"""A waiting unit, and the reason or a function that returns it."""

_Kept = tuple[hosts_module.Rows, float | None]
"""Rows of hosts where room is kept, and the time until which it is kept,
seconds of the epoch."""


def plan(
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order = _OLDEST_FIRST,
    backfill: Backfill = _USUAL,
    rule: weighers.Rule = weighers.fullest,
    *,
    tells: bool = True,
) -> cluster.Plan:
    """Plan which requests start now and on which hosts; other requests get
    reasons.

    :param snapshot: state of the cloud.
    :param now: seconds of the epoch.
    :param order: order of units beyond guaranteed parts.
    :param backfill: limits of starts before the first unit that does not fit.
    :param rule: chooses the host of a server among the hosts with room.
    :param tells: whether the plan includes factors of the order.
    :raises PluginMisbehaved: if the order failed, lost or doubled a request,
        or returned a factor that is not a finite number.
    """
    snapshot = alternatives.with_chosen_alternatives(snapshot)
    held = [
        each
        for each in snapshot.requests
        if each.state is request_model.State.WAITING
    ]
    late = sorted(
        (each for each in held if _is_expired(each, now)),
        key=lambda each: each.uuid,
    )
    waiting = [each for each in held if not _is_expired(each, now)]
    stopped = [each for each in waiting if each.hold]
    if stopped:
        waiting = [each for each in waiting if not each.hold]
        snapshot = _without_held(snapshot, stopped)
    arranged, told = _arrange_by_class(waiting, snapshot, now, order, tells)
    expired = tuple(_expire_action(each, now) for each in late)
    rounds = _Rounds(snapshot, now, backfill, rule)
    started, units = rounds.run(arranged)
    waits = [(each, why) for unit, why in units for each in unit.requests]
    passed = alternatives.actions_for_passed_requests(waits, snapshot)
    places = _waiting_positions(waits, passed, told, rounds.reserved)
    places.update(_held_positions(stopped, len(places)))
    return cluster.Plan((*expired, *passed, *started), places)


def _without_held(
    snapshot: cluster.ClusterSnapshot,
    stopped: Sequence[request_model.Request],
) -> cluster.ClusterSnapshot:
    """Return the snapshot without requests that are held."""
    names = {each.uuid for each in stopped}
    return dataclasses.replace(
        snapshot,
        requests=tuple(e for e in snapshot.requests if e.uuid not in names),
    )


def _held_positions(
    stopped: Iterable[request_model.Request], before: int
) -> dict[str, cluster.Waiting]:
    """Return the positions of held requests: behind all others, the oldest
    first.
    """
    return {
        each.uuid: cluster.Waiting(place, each.hold.why)
        for place, each in enumerate(
            order_module.oldest_first(stopped), before + 1
        )
        if each.hold
    }


def _arrange_by_class(
    waiting: list[request_model.Request],
    snapshot: cluster.ClusterSnapshot,
    now: float,
    order: order_module.Order,
    tells: bool,
) -> tuple[list[request_model.Request], dict[str, cluster.Factors]]:
    """Return requests in order, one priority class after another, and their
    factors.
    """
    arranged: list[request_model.Request] = []
    factors: dict[str, cluster.Factors] = {}
    for band in request_model.Band:
        those = [each for each in waiting if each.band is band]
        if not those:
            continue
        seen = snapshot
        if band is request_model.Band.PREEMPTIBLE:
            seen = _with_preemptible(snapshot)
        found = order_module.arranged(those, seen, now, order)
        arranged += order_module.put_first_ahead(found)
        if tells:
            factors.update(
                order_module.checked_factors(those, seen, now, order)
            )
    return arranged, factors


def _with_preemptible(
    snapshot: cluster.ClusterSnapshot,
) -> cluster.ClusterSnapshot:
    """Return the snapshot in which amounts of preemptible servers count as
    granted.
    """
    granted = dict(snapshot.granted)
    for name, part in tree_module.preemptible_parts(snapshot).items():
        granted[name] = granted.get(name, 0.0) + part
    return dataclasses.replace(snapshot, granted=granted)


class _Rounds:
    """Executes rounds until no further unit starts.

    :param snapshot: state of the cloud.
    :param now: seconds of the epoch.
    :param backfill: limits of starts before the first unit that does not fit.
    :param rule: chooses the host of a server among the hosts with room.

    :ivar reserved: reservations, by UUID of the request.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        now: float,
        backfill: Backfill,
        rule: weighers.Rule,
    ) -> None:
        self._snapshot = snapshot
        self._now = now
        self._backfill = backfill
        self._parts = entitlements.Entitlements(snapshot)
        self._room = capacity.FreeRoom(snapshot, rule)
        self._ends = expected_ends.ExpectedEnds(
            snapshot, now, self._room.hosts
        )
        self._spending = budgets.BudgetUse(snapshot.budgets, snapshot.accounts)
        self._ceilings = ceilings.Ceilings(snapshot)
        self._openings = windows.Openings(snapshot.accounts, now)
        self._promises = preemptor_reservations.PreemptorReservations(
            snapshot, self._room
        )
        self.reserved: dict[str, cluster.Reservation] = {}
        self._alike = equivalence.UnitKinds((), ())
        self._never: dict[int, reason.Why | None] = {}
        self._actions: list[cluster.Action] = []
        self._reservation: cluster.Reservation | None = None
        self._kept_until: dict[int, float | None] = {}
        self._kept_group: request_model.Group | None = None
        self._kept_within: str | None = None
        self._looked = collections.Counter[str]()
        self._left_out: dict[str, reason.Why] = {}
        self._arranged: list[request_model.Request] = []
        self._place: dict[str, int] = {}
        self._begun = self._tried = 0

    def run(
        self, arranged: list[request_model.Request]
    ) -> tuple[list[cluster.Action], list[_Told]]:
        """Return the starts, and the units that wait with their reasons.

        :param arranged: requests, the next one first.
        """
        self._arranged = arranged
        self._place = {each.uuid: n for n, each in enumerate(arranged)}
        units = self._promises.divided(order_module.group_into_units(arranged))
        units = self._start_reserved(units)
        units, self._left_out = self._divide_units(units)
        units = self._order_units(units)
        left_out = dict(self._left_out)
        self._parts.expect(units)
        self._alike = equivalence.UnitKinds(units, self._snapshot.accounts)
        while True:
            self._begun = len(self._actions)
            waiting = self._run_round(units)
            if len(self._actions) == self._begun:
                told = [
                    (each, self._final_reason(each, why, left_out))
                    for each, why in waiting
                ]
                self.reserved.update(self._promises.reserved())
                return self._actions, [*self._promises.waiting(), *told]
            left = {each.requests[0].uuid for each, _ in waiting}
            units = [each for each in units if each.requests[0].uuid in left]
            units = self._regroup(units)

    def _divide_units(
        self, units: list[order_module.Unit]
    ) -> tuple[list[order_module.Unit], dict[str, reason.Why]]:
        """Return units that could start; see :mod:`.divisions`."""
        return divisions.divide_units(
            units, self._too_large_reason, self._room.full_group_reason_of
        )

    def _final_reason(
        self,
        unit: order_module.Unit,
        why: reason.Why | reason.Lazy,
        left_out: Mapping[str, reason.Why],
    ) -> reason.Why:
        """Return the final reason of a unit.

        A request that was left out of its unit at first keeps that reason.
        """
        first = unit.requests[0].uuid
        if first in left_out and first not in self.reserved:
            return left_out[first]
        return why() if callable(why) else why

    def _regroup(
        self, units: list[order_module.Unit]
    ) -> list[order_module.Unit]:
        """Return units as the next plan would form them, after starts in
        groups.

        The waiting requests of these groups are divided again.
        """
        begun = {each.request for each in self._actions[self._begun :]}
        groups = {
            each.group.uuid
            for each in self._arranged
            if each.group and each.uuid in begun
        }
        those = [e for e in units if e.group and e.group.uuid in groups]
        if not those:
            return units
        requests = [each for unit in those for each in unit.requests]
        names = {each.uuid for each in requests}
        requests.sort(key=lambda each: self._place[each.uuid])
        again, left_out = self._divide_units(
            order_module.group_into_units(requests)
        )
        kept = {u: w for u, w in self._left_out.items() if u not in names}
        self._left_out = {**kept, **left_out}
        self._parts.expect(again)
        self._never.clear()
        others = [e for e in units if e.requests[0].uuid not in names]
        units = self._sort_by_position([*others, *again])
        self._alike = equivalence.UnitKinds(units, self._snapshot.accounts)
        return units

    def _order_units(
        self, units: list[order_module.Unit]
    ) -> list[order_module.Unit]:
        """Sort units after a division, as the next plan would do."""
        if not self._left_out and not self._snapshot.promised:
            return units
        return self._sort_by_position(units)

    def _sort_by_position(
        self, units: list[order_module.Unit]
    ) -> list[order_module.Unit]:
        """Return units sorted by the position of their first request."""
        return sorted(
            units, key=lambda unit: self._place[unit.requests[0].uuid]
        )

    def _start_reserved(
        self, units: list[order_module.Unit]
    ) -> list[order_module.Unit]:
        """Start preemptors whose hosts are free; the others wait.

        The hosts of a preemptor that waits stay reserved for it alone.

        :returns: all units that are not preemptors with a reservation.
        """
        if not self._snapshot.promised:
            return units
        others: list[order_module.Unit] = []
        for unit in units:
            placement = self._promises.of(unit)
            if placement is None:
                others.append(unit)
            elif self._room.is_free(unit, placement):
                self._start_unit(unit, placement)
            else:
                self._promises.keep(unit, placement)
                self._parts.take(unit)
                self._charge_unit(unit)
        return others

    def _start_elsewhere(self, *, is_preemptible: bool) -> None:
        """Start preemptors that have room on other hosts now."""
        for unit, rows in self._promises.elsewhere(
            is_preemptible=is_preemptible
        ):
            self._add_start_actions(unit, rows)

    def _run_round(self, units: list[order_module.Unit]) -> list[_Judged]:
        self._parts.forget()
        self._room.forget()
        self._alike.forget()
        self._reservation, self._tried = None, 0
        self._kept_until.clear()
        self._kept_group = None
        self._kept_within = None
        self._looked.clear()
        self.reserved.clear()
        waiting: list[_Judged] = []
        before = 0
        for unit in units:
            if unit.is_first and not unit.is_preemptible:
                why = self._start_in_turn(unit, before)
                if why:
                    waiting.append((unit, why))
                    before += len(unit.requests)
        left = [
            each
            for each in units
            if (not each.is_first or each.is_preemptible)
            and not self._start_within_guarantee(each)
        ]
        is_normal = True
        for unit in self._parts.owners_first(left):
            if is_normal and unit.is_preemptible:
                is_normal = False
                self._start_elsewhere(is_preemptible=False)
            why = self._start_in_turn(unit, before)
            if why:
                waiting.append((unit, why))
                before += len(unit.requests)
        for is_preemptible in (False, True):
            self._start_elsewhere(is_preemptible=is_preemptible)
        return waiting

    def _start_within_guarantee(self, unit: order_module.Unit) -> bool:
        """Start a unit within the guaranteed part of its project, if it
        fits.
        """
        kind = self._alike.of(unit)
        if kind in self._alike.sharing:
            return False
        if self._parts.guaranteed(unit):
            return not self._lasting_reason(unit) and self._try_to_start(unit)
        self._alike.sharing.add(kind)
        return False

    def _start_in_turn(
        self, unit: order_module.Unit, before: int
    ) -> reason.Why | reason.Lazy | None:
        """Start a unit, or return why it waits."""
        depth = self._backfill.depth
        is_beyond = self._reservation is not None and self._tried >= depth
        beyond = functools.partial(
            reason.why, _R.BEYOND_DEPTH, before=before, depth=depth
        )
        if is_beyond and len(self._actions) > self._begun:
            # No later unit starts, and only the last round reports reasons.
            return beyond
        why = self._untried_reason(unit)
        if why is None and is_beyond:
            return beyond
        if why is None and self._reservation:
            self._tried += 1
        if why is None:
            why = self._start_or_lack(unit)
        if why is equivalence.BEHIND:
            return functools.partial(reason.why, why, before=before)
        return why

    def _untried_reason(
        self, unit: order_module.Unit
    ) -> equivalence.Failed | None:
        """Return why a unit is not tried at all; ``None`` if it is tried."""
        kind, known = self._alike.of(unit), self._alike.held_back
        if kind in known or kind in self._alike.tried:
            return known.get(kind)
        never = self._lasting_reason(unit)
        borrows = never and never.reason is _R.OVER_BORROWING_LIMIT
        if borrows and self._parts.owe(unit):
            self._alike.forget()
        is_owed = not never and self._parts.owes(unit)
        why = equivalence.BEHIND if is_owed else never
        if why:
            known[kind] = why
        else:
            self._alike.tried.add(kind)
        return why

    def _start_or_lack(
        self, unit: order_module.Unit
    ) -> equivalence.Failed | None:
        """Start a unit if there is room; otherwise return what it lacks."""
        kind, known = self._alike.of(unit), self._alike.failed
        if kind in known:
            return known[kind]
        why: equivalence.Failed | None = self._parts.lacking(unit)
        binds = self._binding_bits(unit)
        if not why and not self._is_behind(unit, binds):
            if self._try_to_start(unit, binds):
                return None
            why = self._room.lacking(unit, binds)
        why = why or equivalence.BEHIND
        if not self._reservation and why is not equivalence.BEHIND:
            self._reservation = self._reserve_room(unit)
        if self._reservation and unit.requests[0].uuid in self.reserved:
            self._alike.forget()
        else:
            known[kind] = why
        return why

    def _binding_bits(self, unit: order_module.Unit) -> int:
        """Return the bits of reserved room that a unit may not use.

        These are the kinds of room that are needed before the unit ends.
        """
        binds = 0
        for kind, until in self._kept_until.items():
            is_firm = kind == capacity.FIRM
            within = None if is_firm else self._kept_within
            if within not in (None, unit.project):
                # Only its own project can make this room.
                continue
            last = None
            if until is not None:
                last = self._ends.last(unit, is_firm=is_firm)
            if until is None or last is None or last > until:
                binds |= kind
        return binds

    def _is_behind(self, unit: order_module.Unit, binds: int) -> bool:
        """Whether a unit would use reserved room for too long.

        This also holds for another unit of the server group for which room is
        kept: its servers would limit the hosts of this group.
        """
        kept = self._kept_group
        if binds and kept and unit.group and unit.group.uuid == kept.uuid:
            return True
        return self._parts.behind(unit, binds)

    def _reserve_room(
        self, unit: order_module.Unit
    ) -> cluster.Reservation | None:
        """Reserve room for a unit; ``None`` if no room can become free for
        it.
        """
        may_be = self._room.fits_with_own_group(unit)
        if not may_be:
            self._looked[unit.project] += 1
            if self._looked[unit.project] > _OWN_MEMBERS:
                return None
        found = self._reserve_until_known(unit)
        found += self._reserve_until_expected(
            unit, found[0][1] if found else None
        )
        if not found and may_be:
            found = [self._reserve_alone(unit, is_known=True)]
        if not found:
            return None
        self._kept_group = unit.group
        rows = np.unique(np.concatenate([rows for rows, _ in found]))
        reserved = cluster.Reservation(self._room.names(rows), found[0][1])
        self.reserved.update((each.uuid, reserved) for each in unit.requests)
        return reserved

    def _reserve_until_known(self, unit: order_module.Unit) -> list[_Kept]:
        """Reserve room until the time at which known ends make it free."""
        found = self._first_fitting_time(unit, is_firm=True)
        return (
            [self._reserve_until_enough(unit, found, capacity.FIRM)]
            if found
            else []
        )

    def _reserve_until_expected(
        self, unit: order_module.Unit, known: float | None
    ) -> list[_Kept]:
        """Reserve room until the time at which expected ends make it free.

        This is done only if that time is before the known time. A unit that
        waited long for expected ends gets hosts for itself alone.

        :param known: time at which known ends make enough room free, seconds
            of the epoch; ``None`` if they do not.
        """
        is_patient = self._waited_s(unit) < self._backfill.patience_s
        if known is None and not is_patient:
            return []
        if known is not None and known - self._now <= _FAR_S:
            return []
        found = self._first_fitting_time(unit, is_firm=False)
        if found is None or (known is not None and found[0] >= known):
            return []
        if is_patient:
            return [self._reserve_until_enough(unit, found, capacity.LOOSE)]
        if self._room.fits_with_own_group(unit):
            return [self._reserve_alone(unit, is_known=False)]
        return []

    def _waited_s(self, unit: order_module.Unit) -> float:
        return self._now - min(each.asked_at for each in unit.requests)

    def _reserve_until_enough(
        self,
        unit: order_module.Unit,
        found: tuple[float, capacity.Placement],
        kind: int,
    ) -> _Kept:
        """Reserve room until the time at which there is enough."""
        at, placement = found
        is_firm = kind == capacity.FIRM
        hosts, projects = self._ends.until(at, is_firm=is_firm)
        self._parts.keep(unit, projects, kind)
        self._kept_until[kind] = at
        return self._room.reserve(unit, placement, hosts, kind), at

    def _reserve_alone(
        self, unit: order_module.Unit, *, is_known: bool
    ) -> _Kept:
        """Reserve hosts for one unit alone.

        :param is_known: whether servers with known ends count as gone.
        """
        if self._room.is_blocked_by_own_project(unit):
            self._kept_within = unit.project
        returned = None
        times = self._ends.times(is_firm=True)
        if is_known and len(times):
            returned, _ = self._ends.until(float(times[-1]), is_firm=True)
        self._parts.keep(unit, {}, capacity.LOOSE)
        self._kept_until[capacity.LOOSE] = None
        return self._room.keep(unit, returned), None

    def _first_fitting_time(
        self, unit: order_module.Unit, *, is_firm: bool
    ) -> tuple[float, capacity.Placement] | None:
        """Return the first time at which a unit fits, and its hosts at this
        time.

        This is a binary search: a unit that fits after an end fits after all
        later ends, too.

        :param is_firm: whether only known ends count.
        """
        times = self._ends.times(is_firm=is_firm)
        if not len(times):
            return None
        last = len(times) - 1
        placement = self._find_at(unit, float(times[last]), is_firm=is_firm)
        if placement is None:
            return None
        found, first = (float(times[last]), placement), 0
        while first < last:
            middle = (first + last) // 2
            at = float(times[middle])
            placement = self._find_at(unit, at, is_firm=is_firm)
            if placement is None:
                first = middle + 1
            else:
                found, last = (at, placement), middle
        return found

    def _find_at(
        self, unit: order_module.Unit, at: float, *, is_firm: bool
    ) -> capacity.Placement | None:
        """Return hosts that have room for a unit at a given time; ``None``
        if there are none.
        """
        hosts, projects = self._ends.until(at, is_firm=is_firm)
        if not self._parts.fits_later(unit, projects):
            return None
        gone = self._ends.gone(unit, at, is_firm=is_firm)
        return self._room.find_later(unit, hosts, gone)

    def _lasting_reason(self, unit: order_module.Unit) -> reason.Why | None:
        """Return why a unit cannot start, regardless of other units;
        ``None`` if it can.
        """
        kind = self._alike.of(unit)
        if kind not in self._never:
            # These reasons do not change while a plan is made.
            self._never[kind] = _first_reason(
                self._left_out.get(unit.requests[0].uuid),
                self._room.never(unit),
                self._closed_window_reason(unit),
            )
        return _first_reason(
            self._never[kind],
            self._parts.never(unit),
            self._ceiling_reason(unit),
            self._budget_reason(unit),
        )

    def _too_large_reason(self, unit: order_module.Unit) -> reason.Why | None:
        """Return why a unit could not start if no other server ran;
        ``None`` if it could.
        """
        return _first_reason(
            self._room.never(unit),
            self._parts.too_large(unit),
            self._ceiling_reason(unit, is_alone=True),
        )

    def _closed_window_reason(
        self, unit: order_module.Unit
    ) -> reason.Why | None:
        """Return the closed window that opens last, as a reason; ``None``
        if all are open.
        """
        for each in unit.requests:
            aside = self._openings.set_aside(each.project, each.user)
            if aside is not None:
                return reason.why(reason.Reason.ACCOUNT_SET_ASIDE, aside)
        found = [
            closed
            for each in unit.requests
            if (closed := self._openings.closed(each.project, each.user))
        ]
        if not found:
            return None
        name, at = max(found, key=lambda closed: (closed[1], closed[0]))
        if at == math.inf:
            return reason.why(reason.Reason.ACCOUNT_SET_ASIDE, name)
        # A finer number would change in every cycle.
        hours = math.ceil((at - self._now) / 360.0) / 10
        return reason.why(reason.Reason.WINDOW_CLOSED, name, opens_h=hours)

    def _ceiling_reason(
        self, unit: order_module.Unit, *, is_alone: bool = False
    ) -> reason.Why | None:
        over = self._ceilings.passed(unit.requests, is_alone=is_alone)
        if over is None:
            return None
        return reason.why(
            reason.Reason.OVER_ACCOUNT_CEILING,
            f'{over.resource} of {over.account}',
            asked=over.asked,
            used=over.used,
            ceiling=over.ceiling,
        )

    def _budget_reason(self, unit: order_module.Unit) -> reason.Why | None:
        lack = self._spending.lacking(unit.requests, self._now)
        if lack is None:
            return None
        return reason.why(
            reason.Reason.BUDGET_SPENT,
            lack.account,
            asked=round(lack.asked_s / budgets.HOUR_S, 1),
            left=round(lack.left_s / budgets.HOUR_S, 1),
        )

    def _charge_unit(self, unit: order_module.Unit) -> None:
        for each in unit.requests:
            self._spending.take(each, self._now)
            self._ceilings.take(each)

    def _try_to_start(
        self, unit: order_module.Unit, binds: int = capacity.BOTH
    ) -> bool:
        placement = self._room.find(unit, binds)
        if placement is None:
            return False
        self._start_unit(unit, placement, binds)
        return True

    def _start_unit(
        self,
        unit: order_module.Unit,
        placement: capacity.Placement,
        binds: int = capacity.BOTH,
    ) -> None:
        self._room.take(unit, placement, binds)
        self._parts.take(unit, binds)
        self._charge_unit(unit)
        self._add_start_actions(unit, placement)

    def _add_start_actions(
        self, unit: order_module.Unit, placement: capacity.Placement
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


def _first_reason(*found: reason.Why | None) -> reason.Why | None:
    reasons = [each for each in found if each]
    return reason.first_reason(reasons) if reasons else None


def _is_expired(request: request_model.Request, now: float) -> bool:
    by = request.hold and request.hold.by
    return (
        request.expires_at is not None
        and request.expires_at <= now
        and by is not request_model.Holder.OPERATOR
    )


def _expire_action(
    request: request_model.Request, now: float
) -> cluster.Action:
    why = reason.why(
        reason.Reason.WAITED_TOO_LONG, waited_s=max(now - request.asked_at, 0)
    )
    return cluster.Action(
        cluster.Verb.EXPIRE, request.uuid, request.version, (), why
    )


def _waiting_positions(
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
