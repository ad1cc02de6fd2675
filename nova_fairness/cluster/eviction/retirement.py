# SPDX-License-Identifier: Apache-2.0

"""Retirement: evicts preemptible servers that have finished their work, if
requests need their room.

Only servers of owners over their shares retire, because these would be evicted
next. They lose nothing, and no other victim must be chosen. (Cloud Scheduler
retires machines of users over their shares once the jobs there have ended.)
Retired servers are not started again automatically.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import risk
from nova_fairness.planners.preemption import risk as next_module

LOG = logging.getLogger(__name__)

ASKED_AT_ONCE = 20
"""Largest number of servers in one cycle whose report of finished work is
read.

The report is in their metadata, and lists of changed servers do not show
changes of metadata.
"""


@dataclasses.dataclass(frozen=True)
class RetirementOptions:
    """Options that operators set.

    :ivar is_on: whether servers retire.
    :ivar actions: actions of Nova, tried one after the other until the room is
        free.
    """

    is_on: bool = False
    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )


class Retirement:
    """Evicts servers that have finished their work.

    :param nova: reads servers.
    :param server_evictor: evicts servers.
    :param rules: options of operators.
    """

    def __init__(
        self,
        nova: nova_module.Nova,
        server_evictor: evictor.Evictor,
        rules: RetirementOptions,
    ) -> None:
        self._nova = nova
        self._to = server_evictor
        self._rules = rules
        self._left_over = True
        self._turn = 0

    def apply(
        self,
        next_victims: Sequence[next_module.NextVictim],
        warned: Mapping[str, risk.EvictionRisk],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """Start evictions of servers that have finished their work, and spare
        those that work again.

        :param next_victims: servers that would be evicted next.
        :param warned: warnings of servers, by UUID: only the metadata of
            warned servers are read for a report.
        :param servers: all servers, by UUID.
        :param leaves: evictions of the cycle.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        if not (self._rules.is_on or self._left_over):
            return
        wanted = {each.server: each for each in next_victims}
        live = leaves.in_states(eviction.LIVE)
        for leave in live.values():
            if leave.cause is eviction.EvictionCause.RETIRES and (
                leave.state in eviction.UNTOUCHED
            ):
                named = self._to.log_name(leave.server)
                evictor.attempt_for_server(
                    named, self._spare_unfinished, leave, epoch
                )
        # After the option was switched off, chosen servers are spared once.
        self._left_over = False
        if not self._rules.is_on:
            return
        for uuid in self._finished_servers(wanted, warned, servers):
            if uuid not in live:
                evictor.attempt_for_server(
                    servers[uuid].log_name,
                    self._start_eviction,
                    servers[uuid],
                    wanted[uuid],
                    epoch,
                )

    def _finished_servers(
        self,
        next_victims: Mapping[str, next_module.NextVictim],
        warned: Mapping[str, risk.EvictionRisk],
        servers: Mapping[str, nova_module.Server],
    ) -> Iterator[str]:
        """Yield UUIDs of servers that have shut down, or report that their
        work is done.
        """
        asked = []
        for uuid in next_victims:
            server = servers.get(uuid)
            if server is None or server.task:
                continue
            if server.status == 'SHUTOFF':
                yield uuid
            elif uuid in warned:
                asked.append(uuid)
        first = self._turn * ASKED_AT_ONCE % max(len(asked), 1)
        self._turn += 1
        for uuid in (asked[first:] + asked[:first])[:ASKED_AT_ONCE]:
            if self._reports_done(uuid):
                yield uuid

    def _reports_done(self, uuid: str) -> bool:
        """Return whether the metadata of a server report that its work is
        done; log errors.
        """
        try:
            server = self._nova.server(uuid)
        except exception.CloudError as error:
            LOG.warning('server %s: %s', self._nova.log_name(uuid), error)
            return False
        return server is not None and server.says_done

    def _spare_unfinished(self, leave: eviction.Eviction, epoch: int) -> None:
        """Spare a server that no longer reports that its work is done."""
        server = self._nova.server(leave.server)
        if server is None:
            return
        is_done = server.says_done or server.status == 'SHUTOFF'
        if not (self._rules.is_on and is_done):
            self._to.spare(leave, epoch)

    def _start_eviction(
        self,
        server: nova_module.Server,
        next_victim: next_module.NextVictim,
        epoch: int,
    ) -> None:
        """Start the eviction of a server that has finished its work."""
        why = next_victim.why(reason.Reason.RETIRES)
        cause = eviction.EvictionCause.RETIRES
        self._to.start_eviction(server, cause, why, self._rules.actions, epoch)
