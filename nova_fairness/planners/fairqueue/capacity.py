# SPDX-License-Identifier: Apache-2.0

"""Free room of hosts while a plan is made, and placement of units.

A server goes to the host that a rule of :mod:`.weighers` chooses. By default
this is the fullest host, so that large requests find large room. Room may be
kept for the first unit that does not fit. Other units may take kept room if
they end in time, or if the room is enough for both. Room may be kept until two
different times: :data:`FIRM` and :data:`LOOSE`. Servers of groups are placed
by :mod:`.groups`. Arrays have a column per host of :class:`.hosts.Hosts`.
"""

import collections
from collections.abc import Iterable
import dataclasses
import functools

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers
from nova_fairness.planners.fairqueue import groups
from nova_fairness.planners.fairqueue import order

_UNLIMITED = np.iinfo(np.int64).max // 2

_MOST = np.iinfo(np.int32).max

FIRM = 1
"""Bit of room that is reserved until a known time."""

LOOSE = 2
"""Bit of room that is reserved until an expected time, or until it is
sufficient.
"""

BOTH = FIRM | LOOSE

_SOLVED_OF_PROJECT = 2_000
"""Most pairs of a job and a host in all integer programs of a plan for one
project. The time of a program grows with its pairs: about 0.4 ms each."""

_SOLVED = 10_000
"""Most pairs of a job and a host in all integer programs of a plan."""

Placement = tuple[hosts_module.Rows, ...]
"""Rows of hosts, one for each server, for each request of a unit."""


class FreeRoom:
    """Free room of hosts while units are placed.

    :param snapshot: state of the cloud.
    :param rule: chooses the host of a server among the hosts with room.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        rule: weighers.Rule = weighers.fullest,
    ) -> None:
        self._rule = rule
        self._classes = snapshot.classes
        self._hosts = hosts_module.Hosts(snapshot)
        self._free = self._hosts.free
        self._capacity = self._free + self._hosts.used
        # Amounts that units may take: less than is free where room is kept.
        self._spare: dict[int, cluster.Amounts] = {}
        self._open: dict[int, cluster.Amounts] = {}
        self._kept = 0
        self._members = {
            group: self._counts_by_host(self._hosts.rows(names))
            for group, names in snapshot.member_hosts.items()
        }
        self._running = snapshot.running
        self._begun: list[tuple[order.Unit, Placement, int]] = []
        self._groups = snapshot.belongs
        self._solved = collections.Counter[str]()
        self._too_small: set[request.Demand] = set()
        self._reasons: dict[request.Demand, reason.Why] = {}
        self._behind: set[tuple[request.Demand, int]] = set()

    @property
    def hosts(self) -> hosts_module.Hosts:
        """Return the hosts in the state at the start of the plan."""
        return self._hosts

    def never(self, unit: order.Unit) -> reason.Why | None:
        """Return why a unit could not start in an empty cloud; ``None`` if
        it could.
        """
        for each in unit.requests:
            why = self._hosts.shape(each.demand).never
            if why:
                return why
        if _single_demand(unit):
            return None
        found = self._search_empty_cloud(unit)
        if found.rows is not None or not found.is_known:
            return None
        return too_many_servers_reason(unit, found.fit)

    def full_group_reason_of(self, unit: order.Unit) -> reason.Why | None:
        """Return why a unit could not start if only members of its server
        group ran.

        :returns: ``None`` if it could, if no member runs, or if the answer is
            not known.
        """
        if unit.group is None or not self._members_by_host(unit.group).any():
            return None
        found = self._search_among_members(unit)
        if found.rows is not None or not found.is_known:
            return None
        return full_group_reason(unit, found.fit)

    def fits_with_own_group(self, unit: order.Unit) -> bool:
        """Whether a unit fits if only members of its server group run.

        Members of its server group limit its hosts as long as they run. A unit
        that is too large to be tried as a whole counts as one without room.
        """
        if unit.group is None:
            return True
        if not self._members_by_host(unit.group).any():
            return self._search_empty_cloud(unit).rows is not None
        return self._find_in_empty_cloud(unit) is not None

    def is_blocked_by_own_project(self, unit: order.Unit) -> bool:
        """Whether servers of its own project leave no room for a unit.

        Only servers without a known end count: they leave only if their owner
        ends them.
        """
        empty = (
            self._capacity - self._beside(unit.group) - self._own_amounts(unit)
        )
        return (
            self._place_jobs(unit, empty, self._limit_per_host(unit)).rows
            is None
        )

    def _search_empty_cloud(self, unit: order.Unit) -> groups.FoundHosts:
        """Search room in an empty cloud, without members of the server group.

        For a single job the result tells only whether it fits, not where.
        """
        limit = self._limit_per_host(
            unit, np.zeros(len(self._hosts.names), np.int64)
        )
        jobs = self._jobs_of_unit(unit)
        if len(jobs) > 1:
            return self._place_jobs(unit, self._capacity, limit)
        shape, count = jobs[0].shape, jobs[0].count
        whole = np.minimum(shape.count_when_empty, limit[shape.rows])
        fit = min(int(np.minimum(whole, count).sum()), count)
        if fit == count:
            return groups.FoundHosts((), unit.count)
        return groups.FoundHosts(None, 0 if _is_together(unit) else fit)

    def _find_in_empty_cloud(
        self, unit: order.Unit, prefer: groups.Preference | None = None
    ) -> Placement | None:
        """Return hosts for a unit if only members of its server group run."""
        return self._hosts_by_request(
            unit, self._search_among_members(unit, prefer)
        )

    def _search_among_members(
        self, unit: order.Unit, prefer: groups.Preference | None = None
    ) -> groups.FoundHosts:
        """Search room in a cloud with only the members of the unit's server
        group.
        """
        empty = self._capacity - self._beside(unit.group)
        return self._place_jobs(
            unit, empty, self._limit_per_host(unit), prefer
        )

    def find(self, unit: order.Unit, binds: int = BOTH) -> Placement | None:
        """Return hosts for all servers of a unit; ``None`` if there is no
        room.

        :param binds: bits of reserved room that the unit may not use, because
            it does not end before this room is needed.
        """
        demand, binds = _single_demand(unit), binds & self._kept
        if demand in self._too_small or (demand, binds) in self._behind:
            return None
        return self._find_and_count(unit, self._free_for(binds))[0]

    def find_later(
        self,
        unit: order.Unit,
        returned: cluster.Amounts,
        gone: cluster.Amounts | None = None,
    ) -> Placement | None:
        """Return hosts for a unit after other servers have ended; ``None`` if
        there is no room.

        :param returned: (c, p) amounts of these servers.
        :param gone: (p,) number of members of its group among them.
        """
        return self._find_and_count(unit, self._free_later(returned), gone)[0]

    def lacking(
        self, unit: order.Unit, binds: int = BOTH
    ) -> reason.Lazy | None:
        """Return the lack of a unit that remains even if no room were reserved
        for others.

        :param binds: see :meth:`find`.
        :returns: a function that makes the reason; it is valid until more room
            is taken. ``None`` if the unit lacks only room kept for others.
        """
        demand, binds = _single_demand(unit), binds & self._kept
        if demand and (demand, binds) in self._behind:
            return None
        if demand and demand in self._too_small:
            return functools.partial(self._cached_lack_reason, demand)
        placement, fit = self._find_and_count(unit, self._free)
        if placement is not None:
            self._behind.update({(demand, binds)} if demand else ())
            return None
        if demand is None:
            return functools.partial(
                reason.why,
                reason.Reason.GROUP_HAS_NO_ROOM,
                asked=float(unit.count),
                fit=float(fit),
            )
        # Room only gets less, so later units need not search again.
        self._too_small.add(demand)
        return functools.partial(self._cached_lack_reason, demand)

    def take(
        self, unit: order.Unit, placement: Placement, binds: int = BOTH
    ) -> None:
        """Use room of hosts for a unit that starts; see :meth:`find`."""
        self._change_free(unit, placement, binds, 1)

    def give_back(self, unit: order.Unit, placement: Placement) -> None:
        """Free the room of a unit that no longer needs it."""
        self._change_free(unit, placement, BOTH, -1)
        self._too_small.clear()
        self._behind.clear()

    def _change_free(
        self,
        unit: order.Unit,
        placement: Placement,
        binds: int,
        times: int,
    ) -> None:
        """Subtract ``times`` the amounts of a unit from the free amounts."""
        self._reasons.clear()
        self._begun.append((unit, placement, times))
        those = [self._free]
        those += [left for bit, left in self._spare.items() if bit & binds]
        for each, rows in zip(unit.requests, placement, strict=True):
            shape = self._hosts.shape(each.demand)
            for left in those:
                groups.subtract_amounts(left, shape, rows, times)
            for bits in self._open:
                self._refresh_free(bits, rows)
        if unit.group:
            self._count_members(unit, unit.group, placement, times)

    def _count_members(
        self,
        unit: order.Unit,
        group: request.Group,
        placement: Placement,
        times: int,
    ) -> None:
        """Count the servers of a unit as members of their server group."""
        beside = self._beside(group).copy()
        for each, rows in zip(unit.requests, placement, strict=True):
            shape = self._hosts.shape(each.demand)
            groups.subtract_amounts(beside, shape, rows, -times)
        self._used_by_group[group.uuid] = beside
        self._members[group.uuid] = self._members_by_host(
            group
        ) + times * self._counts_by_host(np.concatenate(placement))

    def _free_for(self, binds: int) -> cluster.Amounts:
        """Return the free amounts for units that may not use some reserved
        room.
        """
        if not binds:
            return self._free
        if binds not in self._open:
            self._open[binds] = self._free.copy()
            self._refresh_free(binds, np.arange(len(self._hosts.names)))
        return self._open[binds]

    def _refresh_free(self, binds: int, rows: hosts_module.Rows) -> None:
        left = self._free[:, rows]
        for bit, spare in self._spare.items():
            if bit & binds:
                left = np.minimum(left, spare[:, rows])
        self._open[binds][:, rows] = left

    def is_free(self, unit: order.Unit, placement: Placement) -> bool:
        """Whether the reserved hosts of a unit have room for it now.

        They have none while no servers may start on one of the hosts.
        """
        left = self._free.copy()
        for each, rows in zip(unit.requests, placement, strict=True):
            groups.subtract_amounts(left, self._hosts.shape(each.demand), rows)
        where = np.concatenate(placement)
        rows = np.unique(where)
        taken = left[:, rows] < self._free[:, rows]
        takes = self._hosts.takes[rows].all()
        return bool(
            takes
            and (left[:, rows] >= 0)[taken].all()
            and self._group_allows(unit, where)
        )

    def _group_allows(self, unit: order.Unit, rows: hosts_module.Rows) -> bool:
        """Whether the policy of the unit's server group allows these hosts."""
        if unit.group is None or not len(rows):
            return True
        limit = self._limit_per_host(unit)
        if _is_together(unit):
            return len(np.unique(rows)) == 1 and bool(limit[rows[0]])
        return bool((self._counts_by_host(rows) <= limit).all())

    def reserve(
        self,
        unit: order.Unit,
        placement: Placement,
        returned: cluster.Amounts,
        kind: int,
    ) -> hosts_module.Rows:
        """Reserve room for a unit that starts after other servers have ended.

        :param returned: (c, p) amounts of these servers.
        :param kind: :data:`FIRM` or :data:`LOOSE`.
        :returns: rows of the hosts of the unit.
        """
        later = self._free_later(returned)
        for each, rows in zip(unit.requests, placement, strict=True):
            groups.subtract_amounts(
                later, self._hosts.shape(each.demand), rows
            )
        rows = np.unique(np.concatenate(placement))
        self._store_reservation(kind, rows, later[:, rows])
        return rows

    def keep(
        self, unit: order.Unit, returned: cluster.Amounts | None = None
    ) -> hosts_module.Rows:
        """Reserve the hosts with the smallest lack for one unit alone.

        Their number is that of hosts that would hold the unit when empty.

        :param returned: (c, p) amounts of servers with known ends.
        :returns: rows of the hosts; empty if no hosts would hold the unit.
        """
        first = functools.partial(self._rank_by_lack, returned)
        demand = _single_demand(unit)
        if demand:
            shape = self._hosts.shape(demand)
            every = np.arange(len(shape.rows))
            order_of = np.argsort(
                first(groups.AlikeServers(shape, 1), every), kind='stable'
            )
            rows = shape.rows[order_of[:1]]
        else:
            found = self._find_in_empty_cloud(unit, first)
            rows = np.unique(np.concatenate(found)) if found else np.array([])
        rows = rows.astype(np.intp)
        none = np.zeros((len(self._classes), len(rows)), dtype=np.int64)
        self._store_reservation(LOOSE, rows, none)
        return rows

    def _store_reservation(
        self, kind: int, rows: hosts_module.Rows, left: cluster.Amounts
    ) -> None:
        spare = np.full_like(self._free, _UNLIMITED)
        spare[:, rows] = left
        self._spare[kind] = spare
        self._kept |= kind
        self._open.clear()

    def _rank_by_lack(
        self,
        returned: cluster.Amounts | None,
        job: groups.AlikeServers,
        index: hosts_module.Rows,
    ) -> hosts_module.Fractions:
        """Rank hosts by their lasting lack, then by their present lack.

        The lasting lack is the lack after servers with known ends have ended.

        :param index: indices of the hosts in the rows of the job's shape.
        """
        shape = job.shape
        lack = self._lack_by_host(shape)[:, index].max(axis=0, initial=-np.inf)
        lasting = np.zeros_like(lack)
        if returned is not None:
            back = returned[shape.columns][:, shape.rows[index]]
            later = self._lack_by_host(shape)[:, index]
            later = later - back * shape.inverse[:, index]
            lasting = np.maximum(later.max(axis=0, initial=-np.inf), 0.0)
        ranks: hosts_module.Fractions = np.empty(len(index))
        ranks[np.lexsort((lack, lasting))] = np.arange(len(index))
        return ranks

    def forget(self) -> None:
        """End all reservations."""
        self._spare.clear()
        self._kept = 0
        self._open.clear()
        self._behind.clear()

    def names(self, rows: hosts_module.Rows) -> tuple[str, ...]:
        """Return the names of hosts by their rows."""
        return tuple(self._hosts.names[row] for row in rows)

    def _jobs_of_unit(self, unit: order.Unit) -> list[groups.AlikeServers]:
        """Return the jobs of a unit, the largest first."""
        if _is_together(unit):
            shape = self._hosts.together(_counts_by_demand(unit).items())
            return [groups.AlikeServers(shape, 1)]
        jobs = [
            groups.AlikeServers(self._hosts.shape(demand), count)
            for demand, count in _counts_by_demand(unit).items()
        ]
        return sorted(jobs, key=lambda job: tuple(-job.shape.amounts[:, 0]))

    def _limit_per_host(
        self, unit: order.Unit, present: cluster.Amounts | None = None
    ) -> cluster.Amounts:
        """Return the largest number of servers of a unit that each host may
        still accept, (p,).

        :param present: (p,) number of members of its group on each host;
            ``None`` for the present number.
        """
        if not unit.group:
            return np.full(len(self._hosts.names), unit.count)
        if present is None:
            present = self._members_by_host(unit.group)
        if not _is_together(unit):
            most = min(unit.group.per_host, _MOST)
            return np.maximum(most - present, 0)
        if present.any():
            return np.minimum(present, 1)
        return np.ones_like(present)

    def _find_and_count(
        self,
        unit: order.Unit,
        free: cluster.Amounts,
        gone: cluster.Amounts | None = None,
    ) -> tuple[Placement | None, int]:
        """Search hosts for a unit, and count the servers that fit.

        :param free: (c, p) free amounts of hosts.
        :param gone: see :meth:`find_later`.
        """
        demand = _single_demand(unit)
        if demand:
            shape = self._hosts.shape(demand)
            rows = weighers.choose_host(
                self._hosts, free, shape, self._rule, _salt_of_unit(unit)
            )
            return ((rows,) if len(rows) else None), len(rows)
        limit = self._limit_per_host(unit)
        if gone is not None and unit.group:
            left = np.maximum(self._members_by_host(unit.group) - gone, 0)
            limit = self._limit_per_host(unit, left)
        found = self._place_jobs(unit, free, limit)
        return self._hosts_by_request(unit, found), found.fit

    def _place_jobs(
        self,
        unit: order.Unit,
        free: cluster.Amounts,
        limit: cluster.Amounts,
        prefer: groups.Preference | None = None,
    ) -> groups.FoundHosts:
        """Return hosts for the jobs of a unit; see :mod:`.groups`."""
        jobs = self._jobs_of_unit(unit)
        first = prefer or self._preference_of_rule(unit, free)
        found = groups.place_in_turn(free, jobs, limit, first)
        if found.rows is None and not found.is_known:
            may_solve = functools.partial(self._may_solve, unit.project)
            best = groups.solve_exactly(free, jobs, limit, first, may_solve)
            if best.rows is not None:
                return best
            fit = min(max(found.fit, best.fit), unit.count - 1)
            found = groups.FoundHosts(None, fit, best.is_known)
        if _is_together(unit):
            return dataclasses.replace(found, fit=found.fit * unit.count)
        return found

    def _preference_of_rule(
        self, unit: order.Unit, free: cluster.Amounts
    ) -> groups.Preference:
        def prefer(
            job: groups.AlikeServers, index: hosts_module.Rows
        ) -> hosts_module.Fractions:
            return weighers.host_scores(
                self._hosts,
                free,
                job.shape,
                index,
                self._rule,
                _salt_of_unit(unit),
            )

        return prefer

    def _may_solve(self, project: str, pairs: int) -> bool:
        """Whether an integer program may be solved; if so, count its pairs."""
        is_left = (
            self._solved[project] + pairs <= _SOLVED_OF_PROJECT
            and self._solved.total() + pairs <= _SOLVED
        )
        self._solved[project] += pairs if is_left else 0
        return is_left

    def _hosts_by_request(
        self, unit: order.Unit, found: groups.FoundHosts
    ) -> Placement | None:
        """Convert the hosts of jobs to the hosts of requests."""
        if found.rows is None:
            return None
        if _is_together(unit):
            sizes = [len(each.servers) for each in unit.requests]
            return tuple(np.repeat(found.rows[0], n) for n in sizes)
        rows = {
            id(job.shape): rows
            for job, rows in zip(
                self._jobs_of_unit(unit), found.rows, strict=True
            )
        }
        placement = []
        for each in unit.requests:
            key, n = id(self._hosts.shape(each.demand)), len(each.servers)
            placement.append(rows[key][:n])
            rows[key] = rows[key][n:]
        return tuple(placement)

    def _lack_by_host(
        self, shape: hosts_module.Shape
    ) -> hosts_module.Fractions:
        """Return the lack of each host, as a part of the host, (k, m);
        negative if it has enough.
        """
        have = self._free[shape.columns][:, shape.rows]
        missing: hosts_module.Fractions = (
            shape.amounts - have
        ) * shape.inverse
        return missing

    def _cached_lack_reason(self, demand: request.Demand) -> reason.Why:
        if demand not in self._reasons:
            self._reasons[demand] = self._lack_reason(demand)
        return self._reasons[demand]

    def _lack_reason(self, demand: request.Demand) -> reason.Why:
        shape = self._hosts.shape(demand)
        missing = self._lack_by_host(shape)
        m = int(missing.max(axis=0).argmin())
        k = int(missing[:, m].argmax())
        free = self._free[shape.columns[k], shape.rows[m]]
        return reason.why(
            reason.Reason.NO_ROOM,
            self._classes[shape.columns[k]],
            asked=float(shape.amounts[k, 0]),
            free=float(max(free, 0)),
        )

    def _members_by_host(self, group: request.Group) -> cluster.Amounts:
        return self._members.get(
            group.uuid, np.zeros(len(self._hosts.names), dtype=np.int64)
        )

    def _beside(self, group: request.Group | None) -> cluster.Amounts:
        """Return the amounts of the members of a server group on each host,
        (c, p).
        """
        found = self._used_by_group.get(group.uuid) if group else None
        return np.zeros_like(self._free) if found is None else found

    def _own_amounts(self, unit: order.Unit) -> cluster.Amounts:
        """Return the amounts of servers of a unit's project without a known
        end, (c, p).

        Members of the unit's group are left out, and so are preemptible
        servers, which can be evicted.
        """
        group = unit.group.uuid if unit.group else None
        found = self._amounts_by_host(
            each
            for each in self._running
            if each.project == unit.project
            and each.ends_at is None
            and each.band is request.Band.NORMAL
            and self._group_of(each) != group
        )
        for other, placement, times in self._begun:
            is_own = other.project == unit.project
            if is_own and (not unit.group or other.group != unit.group):
                self._add_lasting_use(found, other, placement, times)
        return found

    def _add_lasting_use(
        self,
        found: cluster.Amounts,
        unit: order.Unit,
        placement: Placement,
        times: int,
    ) -> None:
        """Add amounts of a unit that this plan started and that has no
        known end.
        """
        for each, rows in zip(unit.requests, placement, strict=True):
            if each.time_limit_s is None and not unit.is_preemptible:
                shape = self._hosts.shape(each.demand)
                groups.subtract_amounts(found, shape, rows, -times)

    @functools.cached_property
    def _used_by_group(self) -> dict[str, cluster.Amounts]:
        """Return the amounts of members on each host, (c, p), by UUID of
        the server group.
        """
        members: dict[str, list[cluster.Running]] = {}
        for each in self._running:
            group = self._group_of(each)
            if group in self._members:
                members.setdefault(group, []).append(each)
        return {
            group: self._amounts_by_host(those)
            for group, those in members.items()
        }

    def _group_of(self, server: cluster.Running) -> str:
        """Return the UUID of the server group of a server; '' without a
        group.
        """
        return server.group or self._groups.get(server.uuid, '')

    def _amounts_by_host(
        self, servers: Iterable[cluster.Running]
    ) -> cluster.Amounts:
        """Return the amounts of servers on each host, (c, p)."""
        row = {name: at for at, name in enumerate(self._hosts.names)}
        found = np.zeros_like(self._free)
        for each in servers:
            if each.host in row:
                amounts = cluster.amounts_vector(
                    dict(each.amounts), self._classes
                )
                found[:, row[each.host]] += amounts
        return found

    def _free_later(self, returned: cluster.Amounts) -> cluster.Amounts:
        # The flavor of a server with a volume has more disk than is allocated.
        later: cluster.Amounts = np.minimum(
            self._free + returned, self._capacity
        )
        return later

    def _counts_by_host(self, rows: hosts_module.Rows) -> cluster.Amounts:
        return np.bincount(rows, minlength=len(self._hosts.names))


def too_many_servers_reason(unit: order.Unit, most: int) -> reason.Why:
    """Return the reason that an empty cloud has no room for all servers of
    a unit.
    """
    return reason.why(
        reason.Reason.GROUP_TOO_LARGE,
        _place_text(unit),
        asked=float(unit.count),
        most=float(most),
    )


def full_group_reason(unit: order.Unit, most: int) -> reason.Why:
    """Return the reason that a unit does not fit beside the members of its
    server group.
    """
    return reason.why(
        reason.Reason.GROUP_IS_FULL,
        asked=float(unit.count),
        most=float(most),
    )


def _counts_by_demand(unit: order.Unit) -> dict[request.Demand, int]:
    """Return the number of servers of a unit, by demand."""
    found: dict[request.Demand, int] = {}
    for each in unit.requests:
        found[each.demand] = found.get(each.demand, 0) + len(each.servers)
    return found


def _salt_of_unit(unit: order.Unit) -> int:
    return weighers.salt_of(unit.requests[0].uuid)


def _place_text(unit: order.Unit) -> str:
    """Return a text that describes on which hosts the servers of a unit
    must be.
    """
    if not unit.group:
        return 'on any hosts'
    return 'on one host' if _is_together(unit) else 'on different hosts'


def _is_together(unit: order.Unit) -> bool:
    group = unit.group
    return group is not None and group.rule is request.Rule.TOGETHER


def _single_demand(unit: order.Unit) -> request.Demand | None:
    """Return the demand of a unit that is a single server without group;
    ``None`` for other units.
    """
    return None if unit.group or unit.count > 1 else unit.requests[0].demand
