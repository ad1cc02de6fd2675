# SPDX-License-Identifier: Apache-2.0

"""Guaranteed and shared parts of projects, in each resource class.

A project's guaranteed part is its own, used or not. Amounts of the cloud
beyond all guaranteed parts are shared. A project's use beyond its guaranteed
part is taken from the shared part (the private and the shared quota of
Synergy). Amounts that accounts own and do not lend are guaranteed to all
projects below them.

Use of preemptible servers counts for neither part: they run in amounts that
other servers leave free, up to a limit of their own.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import heapq
from typing import NamedTuple

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import order
from nova_fairness.shares import quotas

UNLIMITED = np.iinfo(np.int64).max


_EVERY = -1
"""All bits: no reserved room may be used."""


class _ReservedAmounts(NamedTuple):
    """Amounts that units may use beside the first unit that does not fit.

    :ivar slack: (c,) amounts of the shared part that other units may take.
    :ivar project: project of the first unit that does not fit.
    :ivar room: (c,) amounts below the ceiling of this project that its other
        units may take.
    """

    slack: cluster.Amounts
    project: str
    room: cluster.Amounts


class _ProjectRequests:
    """Amounts that units of a project need, and cached results about them.

    All attributes but ``rows`` and ``asked`` are cached, and are cleared when
    amounts are taken.

    :param none: (c,) zeros.

    :ivar rows: rows of units, by UUID of their first request.
    :ivar asked: (n, c) amounts that units ask for.
    :ivar excess: (n, c) amounts that would come from the shared part.
    :ivar beyond: (n,) whether a unit needs amounts of the shared part.
    :ivar steps: (n,) see :meth:`.Quotas.steps`.
    :ivar over: (n, 2c + 1) whether a unit exceeds each limit.
    :ivar passes: (n,) whether a unit exceeds any limit.
    :ivar why: reason for the first exceeded limit, by row.
    :ivar looked: :attr:`.Quotas.takes` when results were computed; ``None`` if
        the project took amounts since.
    :ivar changes: see :meth:`.Quotas.changes`.
    """

    def __init__(self, none: cluster.Amounts) -> None:
        self.rows: dict[str, int] = {}
        self.asked = none.reshape(1, -1)[:0]
        self.looked: int | None = None
        self.changes = 0
        self.forget()

    def forget(self) -> None:
        """Clear all results, except the needed amounts."""
        self.excess: cluster.Amounts | None = None
        self.beyond: list[bool] | None = None
        self.steps: list[int] | None = None
        self.over: hosts_module.Marks | None = None
        self.passes: list[bool] = []
        self.why: dict[int, reason.Why | None] = {}

    def add(self, asked: Mapping[str, list[int]]) -> None:
        """Add the amounts (c,) of units, by UUID of their first request."""
        for row, key in enumerate(asked, len(self.asked)):
            self.rows[key] = row
        self.asked = np.concatenate([self.asked, [*asked.values()]])
        self.forget()


class Entitlements:
    """Use and limits of each project, while a plan is made.

    :param snapshot: state of the cloud.
    """

    def __init__(self, snapshot: cluster.ClusterSnapshot) -> None:
        self._classes = snapshot.classes
        self._column = {name: c for c, name in enumerate(snapshot.classes)}
        self._limits = snapshot.limits
        self._used = {name: use.copy() for name, use in snapshot.used.items()}
        self._ceilings: dict[tuple[str, bool], cluster.Amounts] = {}
        self._asking: dict[str, _ProjectRequests] = {}
        self._owed: dict[str, int] = {}
        self._kept: dict[int, _ReservedAmounts] = {}
        self._lent: dict[str, cluster.Amounts] = {}
        for (project, _), use in snapshot.preemptible.items():
            self._lent[project] = self._lent.get(project, 0) + use
        self._quotas = quotas.Quotas(
            snapshot.accounts,
            {
                project: self._vector(limits.guaranteed, 0)
                for project, limits in snapshot.limits.items()
            },
            snapshot.used,
            _cloud_supply(snapshot),
            snapshot.classes,
        )

    def expect(self, units: Iterable[order.Unit]) -> None:
        """Add units, so that results are computed for many units at once.

        For thousands of units this is several times faster than one by one.
        """
        asked: dict[str, dict[str, list[int]]] = {}
        for each in units:
            key = each.requests[0].uuid
            asked.setdefault(each.project, {})[key] = self._compute_asked(each)
        for project, rows in asked.items():
            known = self._asking.setdefault(
                project, _ProjectRequests(self._zero_amounts())
            )
            known.add(rows)

    def owners_first(
        self, units: Sequence[order.Unit]
    ) -> Iterator[order.Unit]:
        """Yield units in order; units that need amounts which their accounts
        own are first.

        Amounts that are taken during the iteration count: after them, a later
        unit may own less.

        :param units: preemptible ones last.
        """
        if not self._quotas.has_owners:
            yield from units
            return
        waiting = [
            (each.is_preemptible, self._owner_distance(each), place)
            for place, each in enumerate(units)
        ]
        heapq.heapify(waiting)
        while waiting:
            is_preemptible, before, place = waiting[0]
            steps = self._owner_distance(units[place])
            if steps > before:
                heapq.heapreplace(waiting, (is_preemptible, steps, place))
            else:
                heapq.heappop(waiting)
                yield units[place]

    def _owner_distance(self, unit: order.Unit) -> int:
        if unit.is_preemptible:
            return 0
        known, row = self._cached_results(unit)
        if known.steps is None:
            steps = self._quotas.steps(unit.project, known.asked)
            known.steps = steps.tolist()
        return known.steps[row]

    def owe(self, unit: order.Unit) -> bool:
        """Prevent other units from borrowing before a unit that may not start.

        This holds where an account has reached its borrowing limit, and the
        amount for which the unit asks is owned below this account: others
        there have borrowed it.

        :returns: whether more units are forbidden to borrow now.
        """
        if unit.is_preemptible or not self._quotas.has_owners:
            return False
        asked, steps = self._asked_amounts(unit), self._owner_distance(unit)
        passed, before = (
            self._quotas.passed(unit.project, asked),
            {**self._owed},
        )
        for step, name in self._quotas.above(unit.project, asked):
            if passed and name == passed.account and step > steps:
                self._owed[name] = min(steps, self._owed.get(name, steps))
        return self._owed != before

    def owes(self, unit: order.Unit) -> bool:
        """Whether a unit would borrow amounts that an earlier unit owns."""
        if unit.is_preemptible or not self._owed:
            return False
        steps = self._owner_distance(unit)
        return any(
            steps > self._owed.get(name, steps)
            for _, name in self._quotas.above(
                unit.project, self._asked_amounts(unit)
            )
        )

    def guaranteed(self, unit: order.Unit) -> bool:
        """Whether a unit fits into the guaranteed part of its project."""
        if unit.is_preemptible:
            return False
        known, row = self._cached_results(unit)
        if known.beyond is None:
            excess = self._excess_of(unit.project, known)
            known.beyond = np.logical_or.reduce(excess, axis=1).tolist()
        return not known.beyond[row]

    def never(self, unit: order.Unit) -> reason.Why | None:
        """Return the limit that a unit exceeds, regardless of the use of
        other projects.
        """
        known, row = self._cached_results(unit)
        if unit.is_preemptible:
            over = self._exceeds_ceiling(
                *_project_and_class(unit), self._asked_amounts(unit)
            )
            passes = bool(over.any())
        else:
            if known.over is None:
                known.over = self._exceeds_limits(unit.project, known)
                passed = np.logical_or.reduce(known.over, axis=1)
                known.passes = passed.tolist()
            over, passes = known.over[row], known.passes[row]
        if not passes:
            return None
        if row not in known.why:
            known.why[row] = self._limit_reason(unit, int(over.argmax()))
        return known.why[row]

    def too_large(self, unit: order.Unit) -> reason.Why | None:
        """Return the ceiling of its project that a unit alone exceeds."""
        asked, top = (
            np.array(self._compute_asked(unit)),
            self._ceiling(*_project_and_class(unit)),
        )
        over = np.flatnonzero((asked > 0) & (asked > top))
        if not len(over):
            return None
        return self._ceiling_reason(unit, int(over[0]), asked)

    def _exceeds_limits(
        self, project: str, known: _ProjectRequests
    ) -> hosts_module.Marks:
        """Return whether units of a project exceed each limit, (n, 2c + 1).

        The limits are the ceiling in each class, the shared part in each
        class, and the borrowing limits of the accounts above.
        """
        asked, excess = known.asked, self._excess_of(project, known)
        within = self._quotas.within(project, asked)
        return np.column_stack(
            [
                self._exceeds_ceiling(project, False, asked),
                excess > self._quotas.shared,
                ~within,
            ]
        )

    def _exceeds_ceiling(
        self, project: str, is_preemptible: bool, asked: cluster.Amounts
    ) -> hosts_module.Marks:
        # Not use + asked: an unlimited ceiling is the largest number.
        use = self._own_use(project, is_preemptible)
        over: hosts_module.Marks = (
            asked > self._ceiling(project, is_preemptible) - use
        ) & (asked > 0)
        return over

    def _limit_reason(
        self, unit: order.Unit, column: int
    ) -> reason.Why | None:
        """Return the reason for the limit in a column of
        :meth:`_exceeds_limits`.
        """
        asked, (which, c) = (
            self._asked_amounts(unit),
            divmod(column, len(self._classes)),
        )
        if which == 0:
            return self._ceiling_reason(unit, c, asked)
        if which == 1:
            return reason.why(
                reason.Reason.OVER_SHARED_PART,
                self._classes[c],
                asked=float(self._excess(unit)[c]),
                shared=float(self._quotas.shared[c]),
            )
        passed = self._quotas.passed(unit.project, asked)
        return passed and reason.why(
            reason.Reason.OVER_BORROWING_LIMIT,
            f'{self._classes[passed.column]} of {passed.account}',
            asked=float(passed.asked),
            limit=float(passed.limit),
        )

    def _ceiling_reason(
        self, unit: order.Unit, c: int, asked: cluster.Amounts
    ) -> reason.Why:
        return reason.why(
            reason.Reason.OVER_CEILING,
            self._classes[c],
            asked=float(asked[c]),
            used=float(self._own_use(*_project_and_class(unit))[c]),
            ceiling=float(self._ceiling(*_project_and_class(unit))[c]),
        )

    def lacking(self, unit: order.Unit) -> reason.Lazy | None:
        """Return the lack of a unit in the shared part, even without reserved
        amounts.

        :returns: a function that makes the reason; it is valid until more is
            taken. ``None`` if the unit lacks nothing.
        """
        excess, left = self._excess(unit), self._quotas.left
        over = excess > left
        for c in np.flatnonzero(over & (excess > 0)) if over.any() else ():
            return functools.partial(
                self._shared_part_reason, unit.project, int(c), int(excess[c])
            )
        return None

    def _shared_part_reason(
        self, project: str, c: int, excess: int
    ) -> reason.Why:
        numbers = {
            'asked': float(excess),
            'free': float(max(self._quotas.left[c], 0)),
        }
        one = self._zero_amounts()
        one[c] = excess
        owner = self._quotas.owner(project, one)
        if owner:
            what = f'{self._classes[c]} of {owner}'
            return reason.why(reason.Reason.NOMINAL_IS_LENT, what, **numbers)
        return reason.why(
            reason.Reason.SHARED_PART_TAKEN,
            self._classes[c],
            shared=float(self._quotas.shared[c]),
            **numbers,
        )

    def behind(self, unit: order.Unit, binds: int) -> bool:
        """Whether a unit would use reserved amounts for too long.

        :param binds: see :meth:`.FreeRoom.find`.
        """
        if not self._kept or unit.is_preemptible:
            return False
        return any(
            self._lacks_amounts(unit, kept)
            for bit, kept in self._kept.items()
            if bit & binds
        )

    def _lacks_amounts(
        self, unit: order.Unit, kept: '_ReservedAmounts'
    ) -> bool:
        asked, excess = self._asked_amounts(unit), self._excess(unit)
        if ((excess > 0) & (excess > kept.slack)).any():
            return True
        return unit.project == kept.project and bool(
            ((asked > 0) & (asked > kept.room)).any()
        )

    def take(self, unit: order.Unit, binds: int = _EVERY) -> None:
        """Subtract the amounts that a unit needs.

        :param binds: see :meth:`.FreeRoom.find`.
        """
        asked, excess = self._asked_amounts(unit), self._excess(unit)
        self._asking[unit.project].looked = None
        if unit.is_preemptible:
            self._lent[unit.project] = (
                self._own_use(*_project_and_class(unit)) + asked
            )
            return
        for bit, kept in self._kept.items():
            if bit & binds:
                is_own = unit.project == kept.project
                room = kept.room - asked if is_own else kept.room
                self._kept[bit] = _ReservedAmounts(
                    kept.slack - excess, kept.project, room
                )
        self._used[unit.project] = self._use_of_project(unit.project) + asked
        self._quotas.take(unit.project, asked)

    def fits_later(
        self, unit: order.Unit, returned: Mapping[str, cluster.Amounts]
    ) -> bool:
        """Whether a unit may start after other servers have ended.

        :param returned: (c,) amounts of these servers, by project.
        """
        left, room = self._free_later(unit, returned)
        return bool((left >= 0).all() and (room >= 0).all())

    def keep(
        self,
        unit: order.Unit,
        returned: Mapping[str, cluster.Amounts],
        kind: int,
    ) -> None:
        """Reserve the amounts for which a unit waits; later units do not use
        them.

        :param returned: (c,) amounts of servers that end before the unit
            starts, by project.
        :param kind: see :meth:`.FreeRoom.reserve`.
        """
        slack, room = self._free_later(unit, returned)
        self._kept[kind] = _ReservedAmounts(slack, unit.project, room)

    def forget(self) -> None:
        """Remove all reservations."""
        self._kept = {}
        self._owed = {}

    def _free_later(
        self, unit: order.Unit, returned: Mapping[str, cluster.Amounts]
    ) -> tuple[cluster.Amounts, cluster.Amounts]:
        """Return the amounts that stay free beside a unit that starts later.

        :returns: (c,) of the shared part, and (c,) below the ceiling of its
            project; missing amounts are negative.
        """
        later = self._quotas.after(
            {
                name: np.minimum(back, self._use_of_project(name))
                for name, back in returned.items()
                # Amounts of preemptible servers belong to no project's part.
                if name
            }
        )
        left, asked = later.left, self._asked_amounts(unit)
        own, excess = (
            self._own_use(*_project_and_class(unit)),
            self._zero_amounts(),
        )
        if not unit.is_preemptible:
            back = returned.get(unit.project, self._zero_amounts())
            own = np.maximum(own - back, 0)
            excess = self._quotas.excess(unit.project, asked, later)
        room = self._ceiling(*_project_and_class(unit)) - own - asked
        # Classes that others overuse do not stop a unit that needs none.
        return (
            np.where(excess > 0, left - excess, np.maximum(left, 0)),
            np.where(asked > 0, room, np.maximum(room, 0)),
        )

    def _asked_amounts(self, unit: order.Unit) -> cluster.Amounts:
        """Return the amounts of a unit, without classes that no host has,
        (c,).
        """
        known, row = self._cached_results(unit)
        one: cluster.Amounts = known.asked[row]
        return one

    def _compute_asked(self, unit: order.Unit) -> list[int]:
        total = [0] * len(self._classes)
        for each in unit.requests:
            for name, amount in each.demand.amounts:
                if name in self._column:
                    total[self._column[name]] += amount * len(each.servers)
        return total

    def _excess(self, unit: order.Unit) -> cluster.Amounts:
        """Return the amounts that the shared part loses if a unit starts,
        (c,).
        """
        if unit.is_preemptible:
            return self._zero_amounts()
        known, row = self._cached_results(unit)
        one: cluster.Amounts = self._excess_of(unit.project, known)[row]
        return one

    def _excess_of(
        self, project: str, known: _ProjectRequests
    ) -> cluster.Amounts:
        """Return the amounts that the shared part loses, by unit of a
        project, (n, c).
        """
        if known.excess is None:
            known.excess = self._quotas.excess(project, known.asked)
        return known.excess

    def _cached_results(
        self, unit: order.Unit
    ) -> tuple[_ProjectRequests, int]:
        """Return the cached results for the project of a unit, and the row
        of the unit.
        """
        key = unit.requests[0].uuid
        known = self._asking.get(unit.project)
        if known is None or key not in known.rows:
            self.expect([unit])
            known = self._asking[unit.project]
        takes = self._quotas.takes
        if known.looked != takes:
            changes = self._quotas.changes(unit.project)
            if known.looked is None or known.changes != changes:
                known.forget()
            known.looked, known.changes = takes, changes
        return known, known.rows[key]

    def _use_of_project(self, project: str) -> cluster.Amounts:
        if project not in self._used:
            self._used[project] = self._zero_amounts()
        return self._used[project]

    def _own_use(self, project: str, is_preemptible: bool) -> cluster.Amounts:
        """Return the use of a project by its preemptible servers, or by all
        others, (c,).
        """
        if is_preemptible:
            return self._lent.get(project, self._zero_amounts())
        return self._use_of_project(project)

    def _ceiling(self, project: str, is_preemptible: bool) -> cluster.Amounts:
        """Return the ceiling of a project for preemptible servers, or for
        all others, (c,).
        """
        key = project, is_preemptible
        if key not in self._ceilings:
            limits = self._limits.get(project, cluster.NO_LIMITS)
            ceiling = limits.preemptible if is_preemptible else limits.ceiling
            self._ceilings[key] = self._vector(ceiling, UNLIMITED)
        return self._ceilings[key]

    def _vector(
        self, amounts: Mapping[str, int], others: int
    ) -> cluster.Amounts:
        named = [amounts.get(name, others) for name in self._classes]
        return np.array(named, dtype=np.int64)

    def _zero_amounts(self) -> cluster.Amounts:
        return np.zeros(len(self._classes), dtype=np.int64)


def _cloud_supply(snapshot: cluster.ClusterSnapshot) -> cluster.Amounts:
    """Return the amounts of the cloud, (c,); a host that accepts no servers
    adds its used amounts.
    """
    takes = np.array([each.takes for each in snapshot.providers], dtype=bool)
    there = np.where(
        takes[:, np.newaxis],
        snapshot.inventory.capacity,
        snapshot.inventory.used,
    )
    supply: cluster.Amounts = there.sum(axis=0, dtype=np.int64)
    return supply


def _project_and_class(unit: order.Unit) -> tuple[str, bool]:
    return unit.project, unit.is_preemptible
