# SPDX-License-Identifier: Apache-2.0

"""Retirement: preemptible servers that are done leave if others need their
room.

Only servers of owners over their shares retire: they would make room next.
They lose nothing, and no other victim has to be chosen. (Cloud Scheduler
retires machines of users over their shares once the jobs there have ended.)
Retired servers do not come back by themselves.
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
"""Largest number of servers in one cycle whose "done" is looked up.

It is in their metadata, and lists of changed servers do not show changes of
metadata.
"""


@dataclasses.dataclass(frozen=True)
class RetirementOptions:
    """Options that operators set.

    :ivar is_on: whether servers retire.
    :ivar actions: tried one after the other until the room is free.
    """

    is_on: bool = False
    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )


class Retirement:
    """Evicts servers that are done with their work.

    :param nova: shows servers.
    :param to: evicts servers.
    :param rules: options of operators.
    """

    def __init__(
        self,
        nova: nova_module.Nova,
        to: evictor.Evictor,
        rules: RetirementOptions,
    ) -> None:
        self._nova = nova
        self._to = to
        self._rules = rules
        self._left_over = True
        self._turn = 0

    def apply(
        self,
        following: Sequence[next_module.Next],
        told: Mapping[str, risk.Risk],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """Evict servers that are done, and spare those that work again.

        :param following: servers that would make room next.
        :param told: servers that were warned of that, by UUID: only these are
            looked up for a "done".
        :param servers: all servers, by UUID.
        :param leaves: evictions of the cycle.
        :param epoch: of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        if not (self._rules.is_on or self._left_over):
            return
        wanted = {each.server: each for each in following}
        live = leaves.found(eviction.LIVE)
        for leave in live.values():
            if leave.cause is eviction.EvictionCause.RETIRES and (
                leave.state in eviction.UNTOUCHED
            ):
                named = self._to.named(leave.server)
                evictor.attempt(named, self._spare_unfinished, leave, epoch)
        # After the option was switched off, chosen servers are spared once.
        self._left_over = False
        if not self._rules.is_on:
            return
        for uuid in self._finished_servers(wanted, told, servers):
            if uuid not in live:
                evictor.attempt(
                    servers[uuid].named,
                    self._choose,
                    servers[uuid],
                    wanted[uuid],
                    epoch,
                )

    def _finished_servers(
        self,
        wanted: Mapping[str, next_module.Next],
        told: Mapping[str, risk.Risk],
        servers: Mapping[str, nova_module.Server],
    ) -> Iterator[str]:
        """Yield UUIDs of servers that shut down or say that they are done."""
        asked = []
        for uuid in wanted:
            server = servers.get(uuid)
            if server is None or server.task:
                continue
            if server.status == 'SHUTOFF':
                yield uuid
            elif uuid in told:
                asked.append(uuid)
        first = self._turn * ASKED_AT_ONCE % max(len(asked), 1)
        self._turn += 1
        for uuid in (asked[first:] + asked[:first])[:ASKED_AT_ONCE]:
            if self._says_done(uuid):
                yield uuid

    def _says_done(self, uuid: str) -> bool:
        try:
            server = self._nova.server(uuid)
        except exception.CloudError as error:
            LOG.warning('server %s: %s', self._nova.named(uuid), error)
            return False
        return server is not None and server.says_done

    def _spare_unfinished(self, leave: eviction.Eviction, epoch: int) -> None:
        """Spare a server that is no longer done."""
        server = self._nova.server(leave.server)
        if server is None:
            return
        is_done = server.says_done or server.status == 'SHUTOFF'
        if not (self._rules.is_on and is_done):
            self._to.spare(leave, epoch)

    def _choose(
        self,
        server: nova_module.Server,
        following: next_module.Next,
        epoch: int,
    ) -> None:
        why = following.why(reason.Reason.RETIRES)
        cause = eviction.EvictionCause.RETIRES
        self._to.choose(server, cause, why, self._rules.actions, epoch)
