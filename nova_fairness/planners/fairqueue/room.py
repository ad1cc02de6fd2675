# SPDX-License-Identifier: Apache-2.0

"""What hosts have left while a plan is made, and who fits where.

A server goes where a rule of :mod:`.placement` says; unless another one is
chosen, where the least is left over, so that large requests find large room.
Where room is kept for the first that does not fit, others get what they
give back in time, and of the rest what will be left beside it. Arrays have a
column per host of :class:`hosts.Hosts`.
"""

from collections.abc import Iterable
import dataclasses
import functools

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import placement as placement_module
from nova_fairness.planners.fairqueue import order

_UNLIMITED = np.iinfo(np.int64).max // 2

Placement = tuple[hosts_module.Rows, ...]
"""Rows of hosts, one per server, for every request of a unit."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    """Servers that are placed in one go.

    :ivar index: of their request in its unit.
    :ivar shape: of one server, or of all that must lie on one host.
    :ivar count: how often the shape is placed.
    """

    index: int
    shape: hosts_module.Shape
    count: int


class Room:
    """The room that is left.

    :param snapshot: of the cloud.
    :param rule: says which of the hosts with room a server is put on.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        rule: placement_module.Rule = placement_module.fullest,
    ) -> None:
        self._rule = rule
        self._classes = snapshot.classes
        self._hosts = hosts_module.Hosts(snapshot)
        self._free = self._hosts.free
        self._capacity = self._free + self._hosts.used
        # What may be taken for long: less than is free where room is kept.
        self._spare = np.full_like(self._free, _UNLIMITED)
        self._open = self._free.copy()
        self._members = {
            group: self._counted(self._hosts.rows(names))
            for group, names in snapshot.members.items()
        }
        self._too_small: set[request.Demand] = set()
        self._reasons: dict[request.Demand, reason.Why] = {}
        self._behind: set[tuple[request.Demand, bool]] = set()

    @property
    def hosts(self) -> hosts_module.Hosts:
        """The hosts, as they are when a plan begins."""
        return self._hosts

    def never(self, unit: order.Unit) -> reason.Why | None:
        """Say why a unit could not start if the hosts were empty."""
        for each in unit.requests:
            why = self._hosts.shape(each.demand).never
            if why:
                return why
        if _plain(unit):
            return None
        most = self._most(unit)
        if most >= unit.count:
            return None
        return reason.why(
            reason.Reason.GROUP_TOO_LARGE,
            _where(unit),
            asked=float(unit.count),
            most=float(most),
        )

    def find(
        self, unit: order.Unit, is_short: bool = False
    ) -> Placement | None:
        """Find hosts for all servers of a unit.

        :param is_short: whether it ends before what is kept is needed.
        """
        demand = _plain(unit)
        if demand in self._too_small or (demand, is_short) in self._behind:
            return None
        return self._search(unit, self._free if is_short else self._open)[0]

    def find_later(
        self, unit: order.Unit, returned: cluster.Amounts
    ) -> Placement | None:
        """Find hosts for a unit once others gave their room back.

        :param returned: (c, p).
        """
        return self._search(unit, self._later(returned))[0]

    def lacking(
        self, unit: order.Unit, is_short: bool = False
    ) -> reason.Lazy | None:
        """Say what a unit lacks on the hosts, whatever is kept.

        :param is_short: see :meth:`find`.
        :returns: says it when it is called, as long as nothing more is taken;
            ``None`` if the unit lacks only what is kept for another.
        """
        demand = _plain(unit)
        if demand and (demand, is_short) in self._behind:
            return None
        if demand and demand in self._too_small:
            return functools.partial(self._closest, demand)
        placement, fit = self._search(unit, self._free)
        if placement is not None:
            self._behind.update({(demand, is_short)} if demand else ())
            return None
        if demand is None:
            return functools.partial(
                reason.why,
                reason.Reason.GROUP_HAS_NO_ROOM,
                asked=float(unit.count),
                fit=float(fit),
            )
        # Room only gets less, so nobody needs to look again.
        self._too_small.add(demand)
        return functools.partial(self._closest, demand)

    def take(
        self, unit: order.Unit, placement: Placement, is_short: bool = False
    ) -> None:
        """Hosts' room to a unit that starts; see :meth:`find`."""
        those = (self._free,) if is_short else (self._free, self._spare)
        self._change(unit, placement, those, 1)

    def give_back(self, unit: order.Unit, placement: Placement) -> None:
        """Free what a unit took, and does not need any more."""
        self._change(unit, placement, (self._free, self._spare), -1)
        self._too_small.clear()
        self._behind.clear()

    def _change(
        self,
        unit: order.Unit,
        placement: Placement,
        those: Iterable[cluster.Amounts],
        times: int,
    ) -> None:
        """Take what a unit asks for so many times from what is left."""
        self._reasons.clear()
        for each, rows in zip(unit.requests, placement, strict=True):
            shape = self._hosts.shape(each.demand)
            for left in those:
                _subtract(left, shape, rows, times)
            self._open[:, rows] = np.minimum(
                self._free[:, rows], self._spare[:, rows]
            )
        if unit.group:
            counted = self._counted(np.concatenate(placement))
            self._members[unit.group.uuid] = (
                self._present(unit.group) + times * counted
            )

    def is_free(self, unit: order.Unit, placement: Placement) -> bool:
        """Tell whether hosts that were promised have room for a unit now.

        A host may take nobody for a while.
        """
        left = self._free.copy()
        for each, rows in zip(unit.requests, placement, strict=True):
            _subtract(left, self._hosts.shape(each.demand), rows)
        rows = np.unique(np.concatenate(placement))
        taken = left[:, rows] < self._free[:, rows]
        takes = self._hosts.takes[rows].all()
        return bool(takes and (left[:, rows] >= 0)[taken].all())

    def reserve(
        self,
        unit: order.Unit,
        placement: Placement,
        returned: cluster.Amounts,
    ) -> hosts_module.Rows:
        """Keep room for a unit that starts once others gave theirs back.

        :param returned: (c, p) by then.
        :returns: rows of its hosts.
        """
        later = self._later(returned)
        for each, rows in zip(unit.requests, placement, strict=True):
            _subtract(later, self._hosts.shape(each.demand), rows)
        rows = np.unique(np.concatenate(placement))
        self._spare[:, rows] = later[:, rows]
        self._open[:, rows] = np.minimum(
            self._free[:, rows], self._spare[:, rows]
        )
        return rows

    def keep(self, unit: order.Unit) -> hosts_module.Rows:
        """Let nobody else start on the hosts that come closest to a unit.

        They are as many as would hold it when they are empty.

        :returns: their rows.
        """
        kept = []
        limit = self._limit(unit)
        for job in self._jobs(unit):
            shape = job.shape
            whole = np.minimum(shape.whole, limit[shape.rows])
            missing = self._missing(shape).max(axis=0, initial=-np.inf)
            nearest = np.argsort(missing, kind='stable')
            before = np.cumsum(whole[nearest]) - whole[nearest]
            needed = nearest[(before < job.count) & (whole[nearest] > 0)]
            kept.append(shape.rows[needed])
            limit[shape.rows[needed]] = 0
        rows = np.unique(np.concatenate(kept))
        self._spare[:, rows] = 0
        self._open[:, rows] = np.minimum(self._free[:, rows], 0)
        return rows

    def forget(self) -> None:
        """Keep hosts for nobody any more."""
        self._spare[:] = _UNLIMITED
        self._open[:] = self._free
        self._behind.clear()

    def names(self, rows: hosts_module.Rows) -> tuple[str, ...]:
        """Names of hosts."""
        return tuple(self._hosts.names[row] for row in rows)

    def _most(self, unit: order.Unit) -> int:
        """Count servers of a unit that empty hosts take, at most."""
        limit = self._limit(unit)
        jobs = self._jobs(unit)
        fit = [
            min(
                job.count,
                int(np.minimum(job.shape.whole, limit[job.shape.rows]).sum()),
            )
            for job in jobs
        ]
        return unit.count * fit[0] if _together(unit) else sum(fit)

    def _jobs(self, unit: order.Unit) -> list[_Job]:
        """Say what is to be placed, the largest first."""
        if _together(unit):
            shape = self._hosts.together(
                (each.demand, len(each.servers)) for each in unit.requests
            )
            return [_Job(0, shape, 1)]
        jobs = [
            _Job(index, self._hosts.shape(each.demand), len(each.servers))
            for index, each in enumerate(unit.requests)
        ]
        return sorted(jobs, key=lambda job: tuple(-job.shape.amounts[:, 0]))

    def _limit(self, unit: order.Unit) -> cluster.Amounts:
        """(p,) how often every host may still take a shape of a unit."""
        if not unit.group:
            return np.full(len(self._hosts.names), unit.count)
        present = self._present(unit.group)
        if not _together(unit):
            return np.maximum(unit.group.per_host - present, 0)
        if present.any():
            return np.minimum(present, 1)
        return np.ones_like(present)

    def _search(
        self, unit: order.Unit, free: cluster.Amounts
    ) -> tuple[Placement | None, int]:
        """Find hosts for a unit, and count servers that fit.

        :param free: (c, p) what hosts have left.
        """
        demand = _plain(unit)
        if demand:
            shape = self._hosts.shape(demand)
            rows = placement_module.chosen(
                self._hosts, free, shape, self._rule, _salt(unit)
            )
            return ((rows,) if len(rows) else None), len(rows)
        jobs = self._jobs(unit)
        free = free if len(jobs) == 1 else free.copy()
        limit = self._limit(unit)
        found: dict[int, hosts_module.Rows] = {}
        for job in jobs:
            rows = self._fill(free, job, limit, _salt(unit))
            found[job.index] = rows
            if len(rows) < job.count:
                return None, sum(len(each) for each in found.values())
            if len(jobs) > 1:
                _subtract(free, job.shape, rows)
                limit = limit - self._counted(rows)
        if _together(unit):
            sizes = [len(each.servers) for each in unit.requests]
            return tuple(np.repeat(found[0], n) for n in sizes), unit.count
        return tuple(found[index] for index in range(len(jobs))), unit.count

    def _fill(
        self,
        free: cluster.Amounts,
        job: _Job,
        limit: cluster.Amounts,
        salt: int,
    ) -> hosts_module.Rows:
        """Rows of hosts for as many as fit, ``job.count`` at most."""
        shape = job.shape
        limit = limit[shape.rows]
        chosen = np.flatnonzero(limit > 0)
        have = free[shape.columns][:, shape.rows[chosen]]
        if job.count == 1:
            found = np.flatnonzero((have >= shape.amounts).all(axis=0))
            fit = np.ones_like(found)
        else:
            whole = hosts_module.smallest(have // shape.amounts, len(chosen))
            found = np.flatnonzero(whole > 0)
            fit = np.minimum(whole, limit[chosen])[found]
        chosen = chosen[found]
        after = placement_module.ranked(
            self._hosts, free, shape, chosen, self._rule, salt
        )
        if job.count == 1 and len(chosen):
            best = int(after.argmin())
            return shape.rows[chosen[best : best + 1]]
        # One after the other: a host that takes one takes as many as it can.
        first = np.argsort(after, kind='stable')
        rows: hosts_module.Rows = np.repeat(
            shape.rows[chosen[first]], fit[first]
        )
        return rows[: job.count]

    def _missing(self, shape: hosts_module.Shape) -> hosts_module.Fractions:
        """(k, m) what is missing, as a part of the host; < 0 for plenty."""
        have = self._free[shape.columns][:, shape.rows]
        missing: hosts_module.Fractions = (
            shape.amounts - have
        ) * shape.inverse
        return missing

    def _closest(self, demand: request.Demand) -> reason.Why:
        if demand not in self._reasons:
            self._reasons[demand] = self._nearest(demand)
        return self._reasons[demand]

    def _nearest(self, demand: request.Demand) -> reason.Why:
        shape = self._hosts.shape(demand)
        missing = self._missing(shape)
        m = int(missing.max(axis=0).argmin())
        k = int(missing[:, m].argmax())
        free = self._free[shape.columns[k], shape.rows[m]]
        return reason.why(
            reason.Reason.NO_ROOM,
            self._classes[shape.columns[k]],
            asked=float(shape.amounts[k, 0]),
            free=float(max(free, 0)),
        )

    def _present(self, group: request.Group) -> cluster.Amounts:
        return self._members.get(
            group.uuid, np.zeros(len(self._hosts.names), dtype=np.int64)
        )

    def _later(self, returned: cluster.Amounts) -> cluster.Amounts:
        # Flavors say more than is allocated of a server that has a volume.
        later: cluster.Amounts = np.minimum(
            self._free + returned, self._capacity
        )
        return later

    def _counted(self, rows: hosts_module.Rows) -> cluster.Amounts:
        return np.bincount(rows, minlength=len(self._hosts.names))


def _subtract(
    free: cluster.Amounts,
    shape: hosts_module.Shape,
    rows: hosts_module.Rows,
    times: int = 1,
) -> None:
    for column, amount in zip(shape.columns, shape.amounts[:, 0], strict=True):
        np.subtract.at(free[column], rows, amount * times)


def _salt(unit: order.Unit) -> int:
    return placement_module.salt_of(unit.requests[0].uuid)


def _where(unit: order.Unit) -> str:
    """Say in words where the servers of a unit must lie."""
    if not unit.group:
        return 'on any hosts'
    return 'on one host' if _together(unit) else 'on different hosts'


def _together(unit: order.Unit) -> bool:
    group = unit.group
    return group is not None and group.rule is request.Rule.TOGETHER


def _plain(unit: order.Unit) -> request.Demand | None:
    """The demand of a unit that is one server; ``None`` for others."""
    return None if unit.group or unit.count > 1 else unit.requests[0].demand
