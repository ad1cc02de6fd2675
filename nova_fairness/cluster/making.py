# SPDX-License-Identifier: Apache-2.0

"""Room is made: it is promised to a request, and servers leave for it.

The promise is written before anybody is told, with the names of all who are
to leave. Whoever finds it after a crash tells those who were not told yet.
It ends with the start of its request, with its time, or if a server that was
to leave has its room still; then servers that were only told stay, and the
next plan makes room anew.

A server that was shelved for it is asked to start again. That comes back
through the queue as any request does, and waits there with its first age.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import leaving as leaving_module
from nova_fairness.cluster import servers as servers_module
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import leaving
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import victims as victims_module

LOG = logging.getLogger(__name__)

_HOUR_S = 3600.0
_REMEMBERED_S = 86400.0
"""For which who left is asked to start again."""
_S = leaving.State


@dataclasses.dataclass(frozen=True)
class Rules:
    """What operators choose.

    :ivar actions: that let a server leave, one after the other until its room
        is free.
    :ivar lasts_s: after which a promise ends that was not kept.
    :ivar again_s: between two times that a server is asked to start again.
    """

    actions: tuple[leaving.Action, ...] = (leaving.Action.SHELVE,)
    lasts_s: float = 1500.0
    again_s: float = 300.0


class Planner:
    """Plans who starts and who makes room; nobody does if victims fail.

    What starts without that goes on.

    :param queue: the queue's planner.
    :param victims: chooses who leaves.
    :param rules: when.
    """

    def __init__(
        self,
        queue: preemption.Planner,
        victims: victims_module.Victims,
        rules: preemption.Rules,
    ) -> None:
        self._queue, self._victims, self._rules = queue, victims, rules
        self._said = ''

    def __call__(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Plan once.

        :raises PluginMisbehaved: if the queue's planner does.
        """
        try:
            found = preemption.plan(
                snapshot, now, self._queue, self._victims, self._rules
            )
            self._said = ''
        except exception.PluginMisbehaved as error:
            found = self._queue(snapshot, now)
            if str(error) != self._said:
                # Estimates plan thousands of times.
                LOG.error('nobody makes room: %s', error)
            self._said = str(error)
        return found


class Making:
    """Keeps promises of room, cycle by cycle.

    :param store: where they are.
    :param nova: starts servers again.
    :param to: lets servers leave.
    :param clock: seconds of the epoch.
    :param rules: what operators chose.
    """

    def __init__(
        self,
        store: store_module.Store,
        nova: servers_module.Nova,
        to: leaving_module.Leaving,
        clock: Callable[[], float],
        rules: Rules,
    ) -> None:
        self._store = store
        self._nova = nova
        self._to = to
        self._clock = clock
        self._rules = rules
        self._rooms: dict[str, tuple[records.Room, str]] = {}
        self._lately: dict[str, leaving.Leave] = {}
        self._asked: dict[str, float] = {}

    def seen(
        self,
        view: snapshot_module.View,
        found: Iterable[records.Record],
        now: float,
    ) -> snapshot_module.View:
        """The cloud with what is promised, and with who leaves.

        :param found: requests that have not ended.
        :param now: seconds of the epoch.
        :raises StoreError: if it cannot be read.
        """
        live = self._store.leaves.found(leaving.LIVE)
        self._lately = self._store.leaves.lately(
            leaving.Cause.ROOM, now - _REMEMBERED_S
        )
        stays = {
            uuid: each.changed_at
            for uuid, each in self._lately.items()
            if each.state is _S.STAYS
        }
        self._rooms = {
            each.request.uuid: (each.room, each.request.project)
            for each in found
            if each.room and _holds(each, each.room, stays, now)
        }
        ends = {
            uuid: each.at
            for uuid, each in live.items()
            if any(action.frees for action in each.actions)
        }
        snapshot = dataclasses.replace(
            view.snapshot,
            promised={
                uuid: room.hosts for uuid, (room, _) in self._rooms.items()
            },
            leaving=frozenset(ends),
            evicted=sum(
                each.state is not _S.SPARED
                and each.changed_at >= now - _HOUR_S
                for each in self._lately.values()
            ),
            running=tuple(
                _as_it_leaves(each, ends, stays)
                for each in view.snapshot.running
            ),
        )
        return dataclasses.replace(view, snapshot=snapshot)

    def promise(
        self, action: cluster.Action, record: records.Record, epoch: int
    ) -> None:
        """Promise a request the room that a plan found for it.

        :raises Outdated: if it is no longer as it was.
        :raises Deposed: if that leader leads no more.
        """
        now = self._clock()
        room = records.Room(
            action.hosts, action.leaving, now, now + self._rules.lasts_s
        )
        self._store.promise_room(record.request, room, epoch)
        self._rooms[action.request] = room, record.request.project

    def work(
        self,
        found: Iterable[records.Record],
        servers: Mapping[str, servers_module.Server],
        epoch: int,
    ) -> None:
        """Let leave whoever was promised to, and start again who left.

        :param found: requests that have not ended.
        :param servers: as they were a moment ago, by UUID.
        :param epoch: of the leader.
        :raises Deposed: if that leader leads no more.
        :raises StoreAway: if the store does not answer.
        """
        if self._rooms:
            self._choose(_asked_at(found), servers, epoch)
        for leave in self._lately.values():
            if leave.state in leaving.UNTOUCHED:
                if leave.request not in self._rooms:
                    _try(leave.server, self._to.spare, leave, epoch)
            elif leave.state is _S.GONE and leave.server in servers:
                server = servers[leave.server]
                _try(leave.server, self._start, leave, server, epoch)

    def _choose(
        self,
        asked_at: Mapping[str, float],
        servers: Mapping[str, servers_module.Server],
        epoch: int,
    ) -> None:
        every = [
            uuid for room, _ in self._rooms.values() for uuid in room.leaving
        ]
        leaves = self._store.leaves.of(every)
        for request, (room, project) in self._rooms.items():
            for uuid in room.leaving:
                leave = leaves.get(uuid)
                is_told = (
                    leave is not None
                    and leave.request == request
                    and leave.changed_at >= room.at
                )
                if uuid in servers and not is_told:
                    _try(
                        uuid,
                        self._to.choose,
                        servers[uuid],
                        leaving.Cause.ROOM,
                        self._why(servers[uuid], project),
                        self._rules.actions,
                        epoch,
                        0.0,
                        request,
                        asked_at.get(uuid),
                    )

    def _why(self, server: servers_module.Server, project: str) -> reason.Why:
        now = self._clock()
        ran_s = max(now - (server.launched_at or now), 0.0)
        return reason.why(reason.Reason.MAKES_ROOM, project, ran_s=ran_s)

    def _start(
        self, leave: leaving.Leave, server: servers_module.Server, epoch: int
    ) -> None:
        """Ask once more for a server; Nova knows whether it is asked for."""
        if server.task:
            return
        if server.status == 'ACTIVE':
            self._to.welcome(leave, epoch)
            self._asked.pop(server.uuid, None)
            return
        now = self._clock()
        is_time = now - self._asked.get(server.uuid, 0.0) >= (
            self._rules.again_s
        )
        if server.status == 'SHELVED_OFFLOADED' and is_time:
            self._asked[server.uuid] = now
            self._nova.unshelve(server.uuid)
            LOG.info('server %s is to start again', server.uuid)


def _holds(
    record: records.Record,
    room: records.Room,
    stays: Mapping[str, float],
    now: float,
) -> bool:
    """Whether room is still promised to a request."""
    return (
        record.request.state is request_model.State.HELD
        and now < room.until
        and not any(stays.get(uuid, 0.0) >= room.at for uuid in room.leaving)
    )


def _as_it_leaves(
    server: cluster.Running,
    ends: Mapping[str, float],
    stays: Mapping[str, float],
) -> cluster.Running:
    """A server that ends as it was told; who could not leave begins anew."""
    if server.uuid in ends:
        return dataclasses.replace(server, ends_at=ends[server.uuid])
    if server.uuid in stays:
        since = max(server.since, stays[server.uuid])
        return dataclasses.replace(server, since=since)
    return server


def _asked_at(found: Iterable[records.Record]) -> dict[str, float]:
    """When servers were asked for, the newest request of each."""
    return {
        server: each.request.asked_at
        for each in found
        for server in each.request.servers
    }


def _try(server: str, do: Callable[..., object], *arguments: object) -> None:
    """Do something for one server; its failure keeps no other back."""
    try:
        do(*arguments)
    except (exception.Deposed, exception.StoreAway):
        raise
    except exception.ClusterError as error:
        LOG.warning('server %s: %s', server, error)
