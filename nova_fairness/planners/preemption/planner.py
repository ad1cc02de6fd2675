# SPDX-License-Identifier: Apache-2.0

"""Planner that adds evictions to the plan of the queue, for requests that the
queue cannot start.

First the queue plans. Then the queue plans again for a cloud without all
candidates: the requests that start only now can be preemptors. The victims
with the least price leave for these; all other servers stay where they are. A
preemptor has a reservation: its hosts are kept until it runs, so that no other
request, and no victim that waits again, takes them.

A preemptible request may take the room of a preemptible server only by shares;
see :meth:`.over_share.ShareLevels.may_leave_for`.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import alternatives
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import least_cost
from nova_fairness.planners.preemption import over_share
from nova_fairness.planners.preemption import pricing
from nova_fairness.planners.preemption import victims as victims_module
from nova_fairness.shares import ledger

Planner = Callable[[cluster.ClusterSnapshot, float], cluster.Plan]

LEAST = least_cost.Least()
"""Default choice of victims."""

_FAILED, _TRIES = 5, 4
"""Bounds of attempts in one plan, so that impossible requests do not delay
others: failed units of one project, and attempts as a multiple of
``at_once``."""

_LEAST_OF_RULES = {
    **dict.fromkeys(('patience_s', 'least_run_s', 'per_hour', 'step_s'), 0),
    **dict.fromkeys(('margin', 'at_once'), 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class PreemptionRules:
    """Conditions and limits of evictions.

    :ivar patience_s: seconds that a request waits before servers are evicted
        for it, >= 0.
    :ivar least_run_s: seconds that a server runs before it may be evicted, >=
        0.
    :ivar per_hour: largest number of servers that are evicted in an hour, >=
        0.
    :ivar step_s: seconds of lost work that count as much as one grade of
        over-share, >= 0; see :meth:`.over_share.ShareLevels.grades`.
    :ivar by_shares: whether preemptible servers are evicted for preemptible
        requests.
    :ivar margin: factor by which the level of an account must exceed that of
        the preemptor for its server to leave for a preemptible one, >= 1.
    :ivar at_once: largest number of requests for which room is made in one
        plan, >= 1.
    :raises ValueError: if a value is out of its range, not a number or
        infinite.
    """

    patience_s: float = 60.0
    least_run_s: float = 600.0
    per_hour: int = 1000
    step_s: float = 3600.0
    by_shares: bool = True
    margin: float = 2.0
    at_once: int = 50

    def __post_init__(self) -> None:
        for name, least_of_it in _LEAST_OF_RULES.items():
            value = getattr(self, name)
            if not least_of_it <= value < math.inf:
                raise ValueError(
                    f'{name} must be a number of at least {least_of_it}, got'
                    f' {value!r}'
                )


USUAL = PreemptionRules()


def plan(
    snapshot: cluster.ClusterSnapshot,
    now: float,
    queue: Planner,
    victims: victims_module.Victims = LEAST,
    rules: PreemptionRules = USUAL,
) -> cluster.Plan:
    """Plan starts, and the evictions that make room for other requests.

    :param snapshot: state of the cloud.
    :param now: seconds of the epoch.
    :param queue: planner of the queue.
    :param victims: chooses the victims.
    :param rules: conditions and limits of evictions.
    :raises PluginMisbehaved: if the queue raises it, if the plugin failed, or
        if it chose victims that make no room.
    """
    snapshot = alternatives.with_chosen_alternatives(snapshot)
    first = queue(snapshot, now)
    if not first.waiting or not snapshot.preemptible:
        return first
    after = _snapshot_after_plan(snapshot, first, now)
    runs = frozenset(each.uuid for each in snapshot.running)
    making = _RoomMaker(after, runs, now, victims, rules)
    making.normal(_requests_gained(after, now, queue, making.parties))
    if rules.by_shares:
        making.by_shares(first)
    making.large()
    waiting = {**first.waiting, **making.waiting(first.waiting)}
    return cluster.Plan((*first.actions, *making.actions), waiting)


class _RoomMaker:
    """Plans evictions, for one request after another.

    :param snapshot: state of the cloud, in which the requests run that the
        queue starts.
    :param runs: UUIDs of servers that run now; only these may be evicted.

    :ivar parties: candidates for eviction.
    :ivar actions: actions that make room.
    :ivar told: why no room is made yet, by UUID of the request.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        runs: frozenset[str],
        now: float,
        victims: victims_module.Victims,
        rules: PreemptionRules,
    ) -> None:
        self._snapshot, self._runs, self._now = snapshot, runs, now
        self._victims, self._rules = victims, rules
        self._levels = over_share.ShareLevels(snapshot)
        self._hosts = hosts_module.Hosts(snapshot)
        self.parties = self._list_candidates()
        self._left: float = max(rules.per_hour - snapshot.evicted, 0)
        self._units = rules.at_once
        self._made = 0
        self._failed: dict[str, int] = {}
        self._large: list[order_module.Unit] = []
        self.actions: list[cluster.Action] = []
        self.told: dict[str, reason.Why] = {}

    def normal(self, requests: Iterable[request_model.Request]) -> None:
        """Make room for normal requests, all at once.

        After a unit for which too many servers would leave, units are treated
        one after the other: their choices may use room of its victims.
        """
        units = [
            e
            for e in order_module.group_into_units(requests)
            if self._is_due(e)
        ]
        first, others = units[: self._units], units[self._units :]
        done = self._make_room(first) if first else 0
        for unit in (*first[done:], *others):
            if self._is_tried_out:
                break
            if self._failed.get(unit.project, 0) < _FAILED:
                self._make_room([unit])

    def large(self) -> None:
        """After an hour without evictions, allow more victims than the hourly
        limit for one request.

        So the first unit that needs so many victims starts, too. No server
        leaves for another unit until the time has passed in which so many
        victims may leave.
        """
        quiet = self._left == self._rules.per_hour and not self.actions
        for unit in self._large if quiet else ():
            self._left = math.inf
            self._make_room([unit])
            if self.actions:
                del self.told[unit.requests[0].uuid]
                return

    def by_shares(self, first: cluster.Plan) -> None:
        """Make room for preemptible requests, one after another."""
        known = {each.uuid: each for each in self._snapshot.requests}
        lacking = [
            known[uuid]
            for uuid, each in first.waiting.items()
            if each.why.reason in reason.LACKS_ROOM
            # A request promised a host that cannot be read waits, too.
            and uuid in known
            and known[uuid].is_preemptible
        ]
        for unit in order_module.group_into_units(lacking):
            if self._is_tried_out or not (self._left and self._has_candidates):
                return
            if self._failed.get(unit.project, 0) < _FAILED and (
                self._is_due(unit)
            ):
                self._make_room_by_shares(unit)

    def _make_room_by_shares(self, unit: order_module.Unit) -> None:
        """Make room for a preemptible request, if victims may be evicted
        for it.
        """
        asked, place = self._asked_part(unit), self._account_row(unit)
        lost = pricing.lost_parts(self._snapshot, self.parties)
        owners = np.array([e.place for e in self.parties], dtype=np.intp)
        may = self._allowed_victims(place, asked, owners, lost)
        if not (may.any() or self._snapshot.leaving):
            self._count_failed(unit)
            return
        field, need = self._build_field(), self._build_need(unit, may)
        choice = victims_module.chosen([need], field, self._victims)[0]
        if choice and self._is_fair(place, asked, owners, lost, choice):
            self._add_actions([unit], [need], [choice], field)
        else:
            self._count_failed(unit)

    @property
    def _is_tried_out(self) -> bool:
        """Whether this plan has reached its limit of attempts."""
        tried = self._made + sum(self._failed.values())
        return self._made >= self._units or tried >= _TRIES * self._units

    def _count_failed(self, unit: order_module.Unit) -> None:
        self._failed[unit.project] = self._failed.get(unit.project, 0) + 1

    def _is_due(self, unit: order_module.Unit) -> bool:
        """Whether room may be made for a unit now; if not, set the reason."""
        if not self._waited_enough(unit):
            return False
        until = self._snapshot.in_vain.get(unit.project, 0.0)
        if self._now >= until:
            return True
        # A finer number would change in every cycle.
        hours = math.ceil((until - self._now) / 360.0) / 10
        self._set_reason(
            unit, reason.why(reason.Reason.ROOM_IN_VAIN, again_h=hours)
        )
        return False

    def _set_reason(self, unit: order_module.Unit, why: reason.Why) -> None:
        self.told.update((each.uuid, why) for each in unit.requests)

    def _make_room(self, units: Sequence[order_module.Unit]) -> int:
        """Make room for normal units together.

        :returns: number of units done; units after one for which too many
            servers would leave are not done.
        """
        field = self._build_field()
        may = np.ones(len(self.parties), dtype=bool)
        needs = [self._build_need(each, may) for each in units]
        choices = victims_module.chosen(needs, field, self._victims)
        return self._add_actions(units, needs, choices, field)

    def waiting(
        self, before: Mapping[str, cluster.Waiting]
    ) -> dict[str, cluster.Waiting]:
        """Return the reasons of preemptors, and of requests for which no
        room is made yet.
        """
        told = {
            uuid: before[uuid]._replace(why=why)
            for uuid, why in self.told.items()
            if uuid in before
        }
        made = {
            each.request: before[each.request]._replace(
                why=each.why, reserved=cluster.Reservation(each.hosts)
            )
            for each in self.actions
        }
        return {**told, **made}

    @property
    def _has_candidates(self) -> bool:
        """Whether there are candidates, or victims that are being evicted."""
        return bool(self.parties or self._snapshot.leaving)

    def _list_candidates(self) -> list[pricing.EvictionCandidate]:
        listed = pricing.list_candidates(
            self._snapshot, self._levels, self._now, self._rules.least_run_s
        )
        return [
            party
            for party in listed
            if all(each.uuid in self._runs for each in party.servers)
        ]

    def _waited_enough(self, unit: order_module.Unit) -> bool:
        asked_at = min(each.asked_at for each in unit.requests)
        return self._now - asked_at >= self._rules.patience_s

    def _account_row(self, unit: order_module.Unit) -> int:
        return self._levels.place(unit.project, unit.requests[0].user)

    def _asked_part(self, unit: order_module.Unit) -> candidates.Floats:
        """Return the weighted part of the cloud that a unit needs, (c,)."""
        snapshot = self._snapshot
        total = np.zeros(len(snapshot.classes))
        for each in unit.requests:
            one = cluster.amounts_vector(
                dict(each.demand.amounts), snapshot.classes
            )
            total += one * len(each.servers)
        capacity = snapshot.inventory.capacity.sum(axis=0, dtype=np.float64)
        return ledger.parts_of_capacity(
            total, capacity
        ) * over_share.class_weights(snapshot)

    def _is_fair(
        self,
        place: int,
        asked: candidates.Floats,
        owners: over_share.Places,
        lost: candidates.Floats,
        choice: candidates.VictimChoice,
    ) -> bool:
        """Whether all victims may be evicted, including all victims of one
        branch together.

        Each branch is tested with the loss of all victims, an upper bound of
        its own loss.
        """
        parties = list(choice.parties)
        total = np.tile(lost[parties].sum(axis=0), (len(parties), 1))
        return bool(
            self._allowed_victims(place, asked, owners[parties], total).all()
        )

    def _allowed_victims(
        self,
        place: int,
        asked: candidates.Floats,
        owners: over_share.Places,
        lost: candidates.Floats,
    ) -> candidates.Marks:
        return self._levels.may_leave_for(
            place, asked, owners, lost, self._rules.margin
        )

    def _build_field(self) -> candidates.VictimCandidates:
        return pricing.victim_candidates(
            self._snapshot,
            self._levels,
            self._hosts,
            self.parties,
            self._now,
            self._rules.step_s,
        )

    def _build_need(
        self, unit: order_module.Unit, may: candidates.Marks
    ) -> candidates.Need:
        group, size = unit.group, len(self._hosts.names)
        is_together = group and group.rule is request_model.Rule.TOGETHER
        limit = np.full(size, unit.count)
        present = np.zeros(size, dtype=np.int64)
        if group:
            members = self._snapshot.member_hosts.get(group.uuid, ())
            rows = self._hosts.rows(members)
            present = np.bincount(rows, minlength=size)
            limit = np.maximum(group.per_host - present, 0)
        if is_together:
            limit = np.minimum(present, 1) if present.any() else limit * 0 + 1
            shape = self._hosts.together(
                (each.demand, len(each.servers)) for each in unit.requests
            )
            return candidates.Need((self._build_piece(shape, 1),), limit, may)
        pieces = [
            self._build_piece(
                self._hosts.shape(each.demand), len(each.servers)
            )
            for each in unit.requests
        ]
        return candidates.Need(tuple(pieces), limit, may)

    def _build_piece(
        self, shape: hosts_module.Shape, count: int
    ) -> candidates.Piece:
        amounts = np.zeros(len(self._snapshot.classes), dtype=np.int64)
        amounts[shape.columns] = shape.amounts[:, 0]
        rows = np.zeros(len(self._hosts.names), dtype=bool)
        rows[shape.rows] = True
        return candidates.Piece(amounts, rows, count)

    def _add_actions(
        self,
        units: Sequence[order_module.Unit],
        needs: Sequence[candidates.Need],
        choices: Sequence[candidates.VictimChoice | None],
        field: candidates.VictimCandidates,
    ) -> int:
        """Turn the victim choices of units into actions; stop after the first
        unit that needs too many victims.

        :returns: number of units that were processed; the last one may have
            exceeded the limit.
        """
        pool, gone, done = candidates.FreeCapacity(field), set[int](), 0
        for unit, need, choice in zip(units, needs, choices, strict=True):
            done += 1
            if choice is None:
                self._count_failed(unit)
                continue
            servers = tuple(
                uuid for v in choice.parties for uuid in field.servers[v]
            )
            if len(servers) > self._left:
                # Later choices may use room of these victims.
                self._set_limit_reason(unit, len(servers))
                break
            self._made += 1
            self._left -= len(servers)
            gone.update(choice.parties)
            pool.carry_out(need, choice)
            self._set_reservations(unit, choice, servers)
        self._snapshot = self._snapshot_after_choices(gone, pool)
        self._hosts = hosts_module.Hosts(self._snapshot)
        self._levels = over_share.ShareLevels(self._snapshot)
        self.parties = self._list_candidates()
        return done

    def _set_limit_reason(self, unit: order_module.Unit, servers: int) -> None:
        """Set the reason of a unit that needs more victims than may be
        evicted now.
        """
        self._count_failed(unit)
        most = self._rules.per_hour
        self._set_reason(
            unit,
            reason.why(
                reason.Reason.LEAVING_IS_LIMITED,
                servers=float(servers),
                left=float(self._left),
                limit=float(most),
            ),
        )
        if servers > most > 0 and not unit.is_preemptible:
            self._large.append(unit)

    def _set_reservations(
        self,
        unit: order_module.Unit,
        choice: candidates.VictimChoice,
        servers: tuple[str, ...],
    ) -> None:
        why = reason.why(
            reason.Reason.ROOM_IS_MADE, servers=float(len(servers))
        )
        for n, each in enumerate(unit.requests):
            rows: Sequence[int]
            if len(choice.rows) == len(unit.requests):
                rows = choice.rows[n]
            else:
                rows = choice.rows[0]
            if len(rows) < len(each.servers):
                rows = tuple(rows) * len(each.servers)
            names = tuple(self._hosts.names[row] for row in rows)
            action = cluster.Action(
                cluster.Verb.MAKE_ROOM,
                each.uuid,
                each.version,
                names,
                why,
                () if n else servers,
            )
            self.actions.append(action)

    def _snapshot_after_choices(
        self, gone: set[int], pool: candidates.FreeCapacity
    ) -> cluster.ClusterSnapshot:
        """Return the snapshot after all choices are executed."""
        snapshot = self._snapshot
        left = {s.uuid for v in gone for s in self.parties[v].servers}
        row = {name: at for at, name in enumerate(self._hosts.names)}
        used = snapshot.inventory.capacity - np.array(
            [pool.free[:, row[each.name]] for each in snapshot.providers]
        ).reshape(snapshot.inventory.capacity.shape)
        return dataclasses.replace(
            snapshot,
            inventory=dataclasses.replace(
                snapshot.inventory, used=np.maximum(used, 0)
            ),
            running=tuple(
                each for each in snapshot.running if each.uuid not in left
            ),
        )


def _requests_gained(
    after: cluster.ClusterSnapshot,
    now: float,
    queue: Planner,
    parties: Sequence[pricing.EvictionCandidate],
) -> list[request_model.Request]:
    """Return the normal requests that would start without all candidates."""
    if not parties and not after.leaving:
        return []
    gone = {each.uuid for party in parties for each in party.servers}
    normal = {
        each.uuid: each for each in after.requests if not each.is_preemptible
    }
    if not any(
        each.state is request_model.State.WAITING for each in normal.values()
    ):
        return []
    thought = dataclasses.replace(
        after,
        requests=tuple(normal.values()),
        inventory=_freed_inventory(after, gone),
        running=tuple(e for e in after.running if e.uuid not in gone),
    )
    return [
        normal[each.request]
        for each in queue(thought, now).actions
        if each.verb is cluster.Verb.START
    ]


def free_without(
    snapshot: cluster.ClusterSnapshot, gone: Collection[str]
) -> cluster.Amounts:
    """Return the free amounts of providers without some servers, (p, c).

    They are negative where more is used than there is.

    :param gone: UUIDs of these servers.
    """
    return snapshot.inventory.capacity - _freed_inventory(snapshot, gone).used


def _freed_inventory(
    snapshot: cluster.ClusterSnapshot, gone: Collection[str]
) -> cluster.Inventory:
    used = snapshot.inventory.used.copy()
    row = {each.name: at for at, each in enumerate(snapshot.providers)}
    for each in snapshot.running:
        if each.uuid in gone and each.host in row:
            used[row[each.host]] -= cluster.amounts_vector(
                dict(each.amounts), snapshot.classes
            )
    return dataclasses.replace(snapshot.inventory, used=np.maximum(used, 0))


def _departing_servers(
    snapshot: cluster.ClusterSnapshot, given: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Return the servers that are being evicted, without victims whose
    preemptor starts on other hosts.
    """
    kept, vain = set[str](), set[str]()
    for uuid, hosts in snapshot.promised.items():
        (kept if given.get(uuid, hosts) == hosts else vain).update(hosts)
    at = {each.uuid: each.host for each in snapshot.running}
    return frozenset(
        u for u in snapshot.leaving if at.get(u) not in vain - kept
    )


def _started_servers(
    request: request_model.Request, hosts: Sequence[str], now: float
) -> list[cluster.Running]:
    """Return the servers of a request as running ones on its hosts."""
    return [
        cluster.Running(
            host,
            request.project,
            request.demand.amounts,
            now,
            request.user,
            server,
            band=request.band,
        )
        for server, host in zip(request.servers, hosts, strict=False)
    ]


def _snapshot_after_plan(
    snapshot: cluster.ClusterSnapshot, plan: cluster.Plan, now: float
) -> cluster.ClusterSnapshot:
    """Return the snapshot after the plan of the queue, with reservations used.

    Preemptors run, and the victims that leave for them are gone.
    """
    given = {each.request: each.hosts for each in plan.actions}
    gone = _departing_servers(snapshot, given)
    used = _freed_inventory(snapshot, gone).used
    projects = dict(snapshot.used)
    members = dict(snapshot.member_hosts)
    row = {each.name: at for at, each in enumerate(snapshot.providers)}
    left = {each.uuid: each for each in snapshot.requests}
    running = [e for e in snapshot.running if e.uuid not in gone]
    for uuid, hosts in {**snapshot.promised, **given}.items():
        if uuid not in left:
            continue
        each = left.pop(uuid)
        one = cluster.amounts_vector(
            dict(each.demand.amounts), snapshot.classes
        )
        for host in hosts:
            if host in row:
                used[row[host]] += one
        running += _started_servers(each, hosts, now)
        if not each.is_preemptible:
            more = one * len(hosts)
            projects[each.project] = projects.get(each.project, 0) + more
        if each.group:
            group = each.group.uuid
            members[group] = (*members.get(group, ()), *hosts)
    return dataclasses.replace(
        snapshot,
        inventory=dataclasses.replace(snapshot.inventory, used=used),
        requests=tuple(left.values()),
        used=projects,
        member_hosts=members,
        running=tuple(running),
        promised={},
    )
