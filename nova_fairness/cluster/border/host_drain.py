# SPDX-License-Identifier: Apache-2.0

"""Eviction of servers from a host that moves to the batch system."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_log import log as logging

from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import border
from nova_fairness.model import eviction
from nova_fairness.model import reason

LOG = logging.getLogger(__name__)

_AGAIN_S = 300.0
"""Seconds between two calls to Nova to live-migrate the same server."""


@dataclasses.dataclass(frozen=True)
class Actions:
    """Actions on the servers of a host, tried one after another until their
    resources are free.

    :ivar preemptible: actions on preemptible servers, after a notice.
    :ivar late: actions on servers that are still there when their time to live
        ends; empty for no action.
    """

    preemptible: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )
    late: tuple[eviction.EvictionAction, ...] = ()


class HostDrain:
    """Live-migrates or evicts the servers of a host.

    :param leaves: evictions of servers.
    :param nova: live-migrates servers.
    :param to: evicts servers, after a notice.
    :param clock: returns seconds of the epoch.
    :param actions: actions on servers.
    """

    def __init__(
        self,
        leaves: leaves_module.EvictionTable,
        nova: nova_module.Nova,
        to: evictor.Evictor,
        clock: Callable[[], float],
        actions: Actions,
    ) -> None:
        self._leaves = leaves
        self._nova = nova
        self._to = to
        self._clock = clock
        self._actions = actions
        self._moved: dict[str, float] = {}

    def clear(
        self,
        work: Iterable[border.RunningWork],
        machine: str,
        asked_at: Mapping[str, float],
        epoch: int,
    ) -> None:
        """Live-migrate servers, and evict preemptible servers after a notice.

        :param work: servers on the host.
        :param machine: name of the host for owners.
        :param asked_at: times of the requests of servers, seconds of the
            epoch, by UUID.
        :param epoch: epoch of the leader.
        :raises Deposed: if another process leads.
        :raises StoreAway: if the store does not answer.
        """
        for each in work:
            if each.way is border.WorkEnd.MOVES:
                named = self._nova.log_name(each.name)
                evictor.attempt_for_server(
                    named, self._live_migrate, each.name
                )
            elif each.way is border.WorkEnd.YIELDS:
                evictor.attempt_for_server(
                    self._nova.log_name(each.name),
                    self._start_eviction,
                    each.name,
                    machine,
                    self._actions.preemptible,
                    asked_at.get(each.name),
                    epoch,
                )

    def end(
        self,
        servers: Iterable[str],
        machine: str,
        epoch: int,
    ) -> None:
        """Evict servers whose time to live has ended.

        :param servers: UUIDs.
        :param machine: see :meth:`clear`.
        :raises Deposed: see :meth:`clear`.
        :raises StoreAway: see :meth:`clear`.
        """
        for uuid in servers:
            evictor.attempt_for_server(
                self._nova.log_name(uuid),
                self._start_eviction,
                uuid,
                machine,
                self._actions.late,
                None,
                epoch,
            )

    def spare(self, machines: Collection[str], epoch: int) -> None:
        """Cancel evictions from hosts that stay in the cloud, and undo their
        actions.

        :param machines: names of hosts that are leaving the cloud.
        :param epoch: epoch of the leader.
        :raises Deposed: see :meth:`clear`.
        :raises StoreAway: see :meth:`clear`.
        """
        for leave in self._leaves.newest_in_states(eviction.GOING).values():
            stays = leave.why.subject not in machines
            if leave.cause is eviction.EvictionCause.HOST and stays:
                named = self._nova.log_name(leave.server)
                evictor.attempt_for_server(
                    named, self._to.cancel, leave, epoch
                )

    def _live_migrate(self, uuid: str) -> None:
        now = self._clock()
        if now - self._moved.get(uuid, 0.0) < _AGAIN_S:
            return
        self._moved = {
            each: at for each, at in self._moved.items() if now - at < _AGAIN_S
        } | {uuid: now}
        self._nova.live_migrate(uuid)
        named = self._nova.log_name(uuid)
        LOG.info('server %s is moved to another host', named)

    def _start_eviction(
        self,
        uuid: str,
        machine: str,
        actions: tuple[eviction.EvictionAction, ...],
        asked_at: float | None,
        epoch: int,
    ) -> None:
        leave = self._leaves.newest_of_servers([uuid]).get(uuid)
        server = self._nova.server(uuid)
        leaves = leave is not None and leave.state in eviction.LIVE
        if server is None or leaves or not actions:
            return
        why = reason.why(reason.Reason.HOST_LEAVES, machine)
        cause = eviction.EvictionCause.HOST
        self._to.start_eviction(
            server, cause, why, actions, epoch, asked_at=asked_at
        )
