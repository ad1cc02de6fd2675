# SPDX-License-Identifier: Apache-2.0

"""Preemption: a request gets a reservation, and victims are evicted for it.

The reservation is stored with all victims before any owner gets a notice.
After a crash the next leader finds it and sends the remaining notices. A
reservation ends:

* with its request,
* when its time is over,
* if a victim still has its room after its last action,
* or if the room no longer exists: the host accepts no servers, or a server
  that was to leave the host stays.

Then the evictions and their actions are cancelled, and the next plan may make
a new reservation.

A server that was shelved for a request, or because its host left the cloud, is
started again. Its unshelve enters the queue like any request, and has the age
of its first request.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import pace
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import reservations
from nova_fairness.cluster.eviction import vain_preemptions
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import alternatives
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import victims as victims_module

LOG = logging.getLogger(__name__)

_HOUR_S = 3600.0
_CLOSED_S = 60.0
"""Seconds after which a host that accepts no servers loses its reservations.

For a moment, all hosts look closed if Nova's broker or database was down.
"""

_ACTED_ON_AT_ONCE = 50
"""Largest number of servers in one cycle that are started again, or whose
evictions are cancelled.
"""

_S, _WAITING = eviction.EvictionState, request_model.State.WAITING
_ENDED_OR_WAITING = request_model.FINAL | {_WAITING}
_STAY = frozenset({_S.STAYS, _S.UNDOING})
_BACK = _STAY | {_S.SPARED}


@dataclasses.dataclass(frozen=True)
class PreemptionOptions:
    """Options that operators set.

    :ivar actions: actions of Nova that evict a server, tried one after the
        other until its room is free.
    :ivar lasts_s: seconds after which an unfulfilled reservation ends.
    :ivar again_s: seconds between two attempts to start a server again. A
        server that still has its room after the last action is not chosen
        again for this time, even if servers need not run that long before they
        may be preempted.
    :ivar in_vain_s: shortest use of preempted room, in seconds. A request that
        uses it for less time, or never runs, was a preemption in vain. Then no
        server is evicted for its project for the same time. The delay doubles
        with each further one in a day. 0: no delay.
    :ivar notice_s: seconds from the notice to the first action.
    :ivar per_hour: largest number of servers that are evicted in an hour, >=
        1. If more are evicted at once, later ones wait longer. ``None``: no
        limit.
    """

    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )
    lasts_s: float = 1500.0
    again_s: float = 300.0
    in_vain_s: float = 300.0
    notice_s: float = 600.0
    per_hour: int | None = None


class Planner:
    """Plans starts and preemptions; without preemptions if the victim policy
    fails.

    Requests that start without preemption are planned in both cases.

    :param queue: planner of the queue.
    :param victims: policy that chooses victims.
    :param rules: rules that decide when preemption is allowed.
    """

    def __init__(
        self,
        queue: preemption.Planner,
        victims: victims_module.Victims,
        rules: preemption.PreemptionRules,
    ) -> None:
        self._queue, self._victims, self._rules = queue, victims, rules
        self._said = ''

    def __call__(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Return a plan of a snapshot.

        :raises PluginMisbehaved: if the planner of the queue raises it.
        """
        try:
            found = preemption.plan(
                snapshot, now, self._queue, self._victims, self._rules
            )
            self._said = ''
        except exception.PluginMisbehaved as error:
            found = self._queue(snapshot, now)
            if str(error) != self._said:
                # Log each error once: estimates plan thousands of times.
                LOG.error(
                    'no preemption is planned: the victim policy failed: %s',
                    error,
                )
            self._said = str(error)
        return found


class PreemptionController:
    """Updates reservations and evicts their victims in each cycle.

    :param store: stores reservations.
    :param nova: starts servers again.
    :param server_evictor: evicts servers.
    :param clock: returns seconds of the epoch.
    :param rules: options of operators.
    """

    def __init__(
        self,
        store: store_module.Store,
        nova: nova_module.Nova,
        server_evictor: evictor.Evictor,
        clock: Callable[[], float],
        rules: PreemptionOptions,
    ) -> None:
        self._store = store
        self._nova = nova
        self._to = server_evictor
        self._clock = clock
        self._rules = rules
        self._rooms: dict[
            str, tuple[records.ReservedRoom, request_model.Request]
        ] = {}
        self._lately: dict[str, eviction.Eviction] = {}
        self._asked: dict[str, float] = {}
        self._turn = 0
        self._closed: dict[str, float] = {}
        self._snapshot: cluster.ClusterSnapshot | None = None
        self._vain = vain_preemptions.VainPreemptionDelays(
            store, rules.in_vain_s, rules.notice_s
        )

    def with_evictions(
        self,
        view: snapshot_module.CloudView,
        open_requests: Iterable[records.RequestRecord],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
    ) -> snapshot_module.CloudView:
        """Return the state of the cloud with reservations and evictions.

        :param view: state of the cloud without them.
        :param open_requests: requests that have not ended.
        :param leaves: evictions of the cycle.
        :param now: seconds of the epoch.
        :raises StoreError: if the store cannot be read.
        """
        # A server that left longer ago is not started again.
        known = leaves.live_or_changed_since(
            now - cycle_evictions.REMEMBERED_S
        )
        self._lately = {
            u: e for u, e in known.items() if e.cause in eviction.COME_BACK
        }
        held = [each for each in open_requests if _may_preempt(each.request)]
        rooms = _valid_reservations(held, now)
        self._snapshot = _with_leaving(
            view.snapshot, _departure_times(known, ()), rooms, known
        )
        vain = self._unneeded_orphans(known, held, rooms, now)
        ends = _departure_times(known, vain)
        back = {u: e.changed_at for u, e in known.items() if e.state in _BACK}
        self._rooms = reservations.valid_reservations(
            _with_leaving(view.snapshot, ends, rooms, known),
            rooms,
            {**back, **vain},
            self._closed_hosts(view.snapshot, rooms, now),
        )
        stays = {**_protected_until(known, self._rules.again_s), **vain}
        left = dataclasses.replace(
            _with_leaving(view.snapshot, ends, self._rooms, known),
            promised={
                uuid: room.hosts for uuid, (room, _) in self._rooms.items()
            },
            evicted=self._victims_last_hour(now),
            in_vain=self._vain.delay_ends(now),
            running=tuple(
                _with_announced_end(each, ends, stays)
                for each in view.snapshot.running
            ),
        )
        return dataclasses.replace(
            view, snapshot=alternatives.with_chosen_alternatives(left)
        )

    def _victims_last_hour(self, now: float) -> int:
        """Return the number of victims in the last hour, or more if earlier
        victims still count.
        """
        times = sorted(
            each.changed_at
            for each in self._lately.values()
            if each.state is not _S.SPARED
        )
        lately = sum(at >= now - _HOUR_S for at in times)
        if self._rules.per_hour is None:
            return lately
        return max(
            lately, victims_above_limit(times, self._rules.per_hour, now)
        )

    def _unneeded_orphans(
        self,
        known: Mapping[str, eviction.Eviction],
        held: Iterable[records.RequestRecord],
        rooms: reservations.Rooms,
        now: float,
    ) -> dict[str, float]:
        """Return victims whose preemptor no longer waits and whose room no
        other request needs, with the present time.
        """
        waits = {each.request.uuid for each in held}
        orphans = reservations.orphaned_victims(known, waits)
        given = [(room.hosts, each) for room, each in rooms.values()]
        needed = self._needed_orphans(orphans, given)
        return dict.fromkeys(orphans.keys() - needed, now)

    def _needed_orphans(
        self,
        orphans: Mapping[str, eviction.Eviction],
        placed_requests: Iterable[reservations.Given],
    ) -> set[str]:
        """Return victims without a preemptor whose room another request
        needs.
        """
        snapshot = self._snapshot
        if not orphans or snapshot is None:
            return set()
        return reservations.needed_orphans(
            snapshot, orphans, snapshot.leaving, placed_requests
        )

    def _closed_hosts(
        self,
        snapshot: cluster.ClusterSnapshot,
        rooms: reservations.Rooms,
        now: float,
    ) -> set[str]:
        """Return hosts that have been closed for too long to have
        reservations.

        A host that could not be read, or that no longer exists, counts as
        closed.
        """
        named = {host for room, _ in rooms.values() for host in room.hosts}
        there = {each.name for each in snapshot.providers}
        closed = {e.name for e in snapshot.providers if not e.takes}
        self._closed = {
            name: self._closed.get(name, now)
            for name in closed | (named - there)
        }
        return {
            name
            for name, since in self._closed.items()
            if now - since >= _CLOSED_S
        }

    def reserve_room(
        self, action: cluster.Action, record: records.RequestRecord, epoch: int
    ) -> None:
        """Store the reservation that a plan made for a request.

        If the request changed since the plan, no reservation is made and no
        server is evicted.

        :raises Outdated: if the request has changed since the plan.
        :raises Deposed: if that leader no longer leads.
        """
        if action.version != record.request.version:
            raise exception.Outdated(
                f'request {action.request} changed after the plan was made:'
                ' the next plan decides again'
            )
        now = self._clock()
        room = records.ReservedRoom(
            action.hosts, action.leaving, now, now + self._rules.lasts_s
        )
        self._store.reserve_room(record.request, room, epoch)
        self._rooms[action.request] = room, record.request

    def process_victims(
        self,
        open_requests: Iterable[records.RequestRecord],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """Start and cancel evictions for reservations, and restart servers
        that were shelved.

        :param open_requests: requests that have not ended.
        :param servers: servers of the latest list, by UUID.
        :param leaves: evictions of the cycle, with all victims of
            reservations.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        needed, left = self._adopted_victims(), _ACTED_ON_AT_ONCE
        self._turn += 1
        for leave in pace.interleave_by_owner(
            self._lately.values(), lambda each: each.project, self._turn
        ):
            server = servers.get(leave.server)
            if not left:
                break
            if reservations.depends_on_preemptor(leave) and not (
                leave.server in needed
                or self._has_waiting_preemptor(leave, server)
            ):
                left -= evictor.attempt_for_server(
                    self._to.log_name(leave.server),
                    self._to.cancel,
                    leave,
                    epoch,
                )
            elif leave.state is _S.GONE and server:
                left -= evictor.attempt_for_server(
                    server.log_name, self._restart_server, leave, server, epoch
                )
        if self._rooms:
            self._evict_victims(
                newest_request_by_server(open_requests), servers, leaves, epoch
            )

    def _adopted_victims(self) -> set[str]:
        """Return the victims whose room now serves another request than their
        preemptor.

        Requests are read from the store again, because some have started or
        were cancelled since the snapshot.
        """
        given, rooms = list[reservations.Given](), {}
        for uuid, (room, asked) in self._rooms.items():
            record = self._store.request(uuid)
            if record and _may_preempt(record.request):
                rooms[uuid] = room, asked
                given.append((room.hosts, asked))
            elif record and record.request.state not in _ENDED_OR_WAITING:
                given.append((record.hosts, asked))
        self._rooms = rooms
        return self._needed_orphans(
            reservations.orphaned_victims(self._lately, rooms), given
        )

    def _has_waiting_preemptor(
        self, leave: eviction.Eviction, server: nova_module.Server | None
    ) -> bool:
        """Return whether the preemptor of a victim still waits for the
        victim's room.

        A request with a new reservation may rely on a victim that the
        reservation does not name. A server that was moved to another host has
        already freed its room.
        """
        if leave.request not in self._rooms:
            return False
        room, _ = self._rooms[leave.request]
        return not (server and server.host not in {'', *room.hosts})

    def _evict_victims(
        self,
        requests: Mapping[str, request_model.Request],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """Start the evictions of victims that have no eviction for their
        reservation yet.
        """
        every = [
            uuid for room, _ in self._rooms.values() for uuid in room.leaving
        ]
        left_by = leaves.of_servers(every)
        for request, (room, asked) in self._rooms.items():
            for uuid in room.leaving:
                is_told = _is_evicted_for(left_by.get(uuid), request, room)
                if uuid in servers and not is_told:
                    own = requests.get(uuid)
                    evictor.attempt_for_server(
                        servers[uuid].log_name,
                        self._to.start_eviction,
                        servers[uuid],
                        eviction.EvictionCause.ROOM,
                        self._reason_for(servers[uuid], asked.project),
                        actions_of_owner_first(own, self._rules.actions),
                        epoch,
                        0.0,
                        request,
                        own and own.asked_at,
                    )

    def _reason_for(
        self, server: nova_module.Server, project: str
    ) -> reason.Why:
        """Return the reason that the owner of a victim sees.

        :param project: project of the preemptor.
        """
        now = self._clock()
        ran_s = max(now - (server.launched_at or now), 0.0)
        return reason.why(reason.Reason.MAKES_ROOM, project, ran_s=ran_s)

    def _restart_server(
        self, leave: eviction.Eviction, server: nova_module.Server, epoch: int
    ) -> bool:
        """Ask Nova to start an evicted server again, unless Nova is already
        doing that.

        :returns: whether this method did anything.
        """
        if server.task:
            return False
        if server.status == 'ACTIVE':
            self._to.record_return(leave, epoch)
            self._asked.pop(server.uuid, None)
            return True
        now = self._clock()
        is_time = now - self._asked.get(server.uuid, 0.0) >= (
            self._rules.again_s
        )
        if server.status != 'SHELVED_OFFLOADED' or not is_time:
            return False
        self._asked[server.uuid] = now
        self._nova.unshelve(server.uuid)
        LOG.info(
            'server %s: Nova was asked to start it again after its eviction',
            server.log_name,
        )
        return True


def _may_preempt(request: request_model.Request) -> bool:
    """Return whether servers may be evicted for a request: it waits, and is
    not held.
    """
    return request.state is _WAITING and request.hold is None


def victims_above_limit(
    times: Iterable[float], per_hour: int, now: float
) -> int:
    """Return the number of victims that still count against the limit per
    hour.

    Each victim counts until the limit would have allowed it. If evictions
    never exceed the limit, the result is at most the number of victims in the
    last hour.

    :param times: times at which servers were evicted, ascending, seconds of
        the epoch.
    :param per_hour: largest number of servers that are evicted in an hour, >=
        1.
    :param now: seconds of the epoch.
    """
    count, since = 0.0, 0.0
    for at in times:
        count = max(count - (at - since) * per_hour / _HOUR_S, 0.0) + 1
        since = at
    count -= max(now - since, 0.0) * per_hour / _HOUR_S
    return math.ceil(max(count, 0.0))


def _valid_reservations(
    held: Iterable[records.RequestRecord], now: float
) -> reservations.Rooms:
    """Return reservations whose time is not over, with their requests, by UUID
    of the request.
    """
    return {
        each.request.uuid: (each.room, each.request)
        for each in held
        if each.room and now < each.room.until
    }


def _protected_until(
    known: Mapping[str, eviction.Eviction], pause_s: float
) -> dict[str, float]:
    """Return the times until which servers whose eviction failed are not
    chosen again, by UUID.
    """
    return {
        uuid: each.changed_at + pause_s
        for uuid, each in known.items()
        if each.state in _STAY
    }


def _departure_times(
    known: Mapping[str, eviction.Eviction], vain: Collection[str]
) -> dict[str, float]:
    """Return the times at which servers will leave and free their room, by
    UUID.
    """
    return {
        uuid: each.at
        for uuid, each in known.items()
        if each.state in eviction.GOING
        and uuid not in vain
        and any(action.frees for action in each.actions)
    }


def _is_evicted_for(
    leave: eviction.Eviction | None, request: str, room: records.ReservedRoom
) -> bool:
    """Return whether an eviction belongs to this reservation of the
    request.
    """
    return (
        leave is not None
        and leave.request == request
        and leave.changed_at >= room.at
    )


def _victims_without_notice(
    rooms: reservations.Rooms, known: Mapping[str, eviction.Eviction]
) -> frozenset[str]:
    """Return victims of reservations for which no eviction was started yet.

    They are also found after a crash, because the store has the reservation.
    """
    return frozenset(
        server
        for uuid, (room, _) in rooms.items()
        for server in room.leaving
        if not _is_evicted_for(known.get(server), uuid, room)
    )


def _with_leaving(
    snapshot: cluster.ClusterSnapshot,
    ends: Iterable[str],
    rooms: reservations.Rooms,
    known: Mapping[str, eviction.Eviction],
) -> cluster.ClusterSnapshot:
    """Return the snapshot with all servers that will leave.

    :param ends: UUIDs of servers with an eviction that will free room.
    :param rooms: reservations; their victims may have no eviction yet.
    :param known: evictions, by UUID of the server.
    """
    without_notice = _victims_without_notice(rooms, known)
    return dataclasses.replace(snapshot, leaving=without_notice.union(ends))


def _with_announced_end(
    server: cluster.Running,
    ends: Mapping[str, float],
    stays: Mapping[str, float],
) -> cluster.Running:
    """Return a server with its announced end, or with a later begin if it was
    protected.

    :param ends: times at which servers leave, by UUID.
    :param stays: times from which servers whose eviction failed count as newly
        started, by UUID.
    """
    if server.uuid in ends:
        return dataclasses.replace(server, ends_at=ends[server.uuid])
    if server.uuid in stays:
        since = max(server.since, stays[server.uuid])
        return dataclasses.replace(server, since=since)
    return server


def actions_of_owner_first(
    request: request_model.Request | None,
    actions: tuple[eviction.EvictionAction, ...],
) -> tuple[eviction.EvictionAction, ...]:
    """Return the actions of an eviction: first the owner's choice, then those
    of the operator.

    :param request: newest request of the server; ``None`` if unknown.
    """
    first = request.leaves_by if request else None
    if first is None:
        return actions
    return (first, *(each for each in actions if each is not first))


def victims_of_reservations(
    open_requests: Iterable[records.RequestRecord],
) -> set[str]:
    """Return the UUIDs of the victims of all reservations."""
    return {
        uuid
        for each in open_requests
        if each.room
        for uuid in each.room.leaving
    }


def newest_request_by_server(
    open_requests: Iterable[records.RequestRecord],
) -> dict[str, request_model.Request]:
    """Return the newest request of each server; see
    :func:`.request.newest_by_server`.
    """
    return request_model.newest_by_server(
        each.request for each in open_requests
    )
