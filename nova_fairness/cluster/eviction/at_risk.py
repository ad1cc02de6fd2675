# SPDX-License-Identifier: Apache-2.0

"""Warnings to servers that may be evicted next, and their withdrawal.

A warning has no effect on the server. It is stored before it is written to the
metadata of the server. After a crash the next leader finds it in the store and
writes the metadata.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import risk
from nova_fairness.planners.preemption import risk as next_module

LOG = logging.getLogger(__name__)

AT_ONCE = 20
"""Largest number of servers whose metadata are written in one cycle; each
needs a call of Nova.
"""


@dataclasses.dataclass(frozen=True)
class AtRiskOptions:
    """Options that operators set.

    :ivar most: largest number of servers at risk at the same time; 0: no
        server is warned.
    :ivar hold_s: shortest time, in seconds, between two changes of a server's
        warning.
    :raises ValueError: if an option is out of its range.
    """

    most: int = 0
    hold_s: float = 900.0

    def __post_init__(self) -> None:
        if self.most < 0 or not 0 <= self.hold_s < math.inf:
            raise ValueError(
                'the largest number of servers at risk and the time between'
                ' two changes of a warning must be at least 0, got'
                f' {self.most} and {self.hold_s:g} s'
            )


class RiskWarnings:
    """Sends and withdraws warnings that servers are at risk of eviction.

    :param store: stores the warnings.
    :param channels: channels to owners and guests.
    :param rules: options of operators.
    :ivar told: warnings of servers that are at risk now, by UUID of the
        server.
    """

    def __init__(
        self,
        store: store_module.Store,
        channels: notice_channels.NoticeChannel,
        rules: AtRiskOptions,
    ) -> None:
        self._store = store
        self._channels = channels
        self._rules = rules
        self._left_over = True
        self._turn = 0
        self.told: Mapping[str, risk.EvictionRisk] = {}

    def apply(
        self,
        next_victims: Sequence[next_module.NextVictim],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> None:
        """Warn the next victims, and withdraw warnings of other servers.

        :param next_victims: servers that would be evicted next, in this order.
        :param servers: all servers, by UUID.
        :param leaves: live evictions of the cycle.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        if not (self._rules.most or self._left_over):
            return
        wanted = {
            each.server: each for each in next_victims[: self._rules.most]
        }
        known = self._remaining_warnings(wanted, servers, leaves, now, epoch)
        new = [
            self._new_warning(each, servers[uuid], now)
            for uuid, each in wanted.items()
            if uuid not in known and uuid in servers
        ]
        for each in new[:AT_ONCE]:
            self._store.risks.add(each, epoch)
            named = servers[each.server].log_name
            LOG.info('server %s is at risk: %s', named, each.why.sentence)
        known |= {each.server: each for each in new[:AT_ONCE]}
        unwritten = [each for each in known.values() if not each.is_written]
        # In turn: servers for which Nova fails must not delay other servers.
        first = self._turn % max(len(unwritten), 1)
        self._turn += AT_ONCE
        for each in (unwritten[first:] + unwritten[:first])[:AT_ONCE]:
            named = servers[each.server].log_name
            evictor.attempt_for_server(
                named, self._send_warning, each, named, epoch
            )
        self.told = {
            uuid: each for uuid, each in known.items() if each.is_at_risk
        }
        # After the option was switched off, old warnings are still withdrawn.
        self._left_over = bool(known)

    def _remaining_warnings(
        self,
        next_victims: Mapping[str, next_module.NextVictim],
        servers: Mapping[str, nova_module.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> dict[str, risk.EvictionRisk]:
        """Return the warnings that remain; store the changes of the others.

        A warning ends if its server is evicted or deleted, or is no longer
        among the next victims.
        """
        left = {}
        gone = leaves.in_states(eviction.LIVE)
        for uuid, each in self._store.risks.all_warnings().items():
            is_held = now - each.changed_at < self._rules.hold_s
            if uuid not in servers:
                self._store.risks.remove(uuid, epoch)
            elif uuid in gone:
                named = servers[uuid].log_name
                evictor.attempt_for_server(
                    named, self._withdraw_warning, uuid, named, epoch
                )
            elif each.is_at_risk and uuid not in next_victims and not is_held:
                left[uuid] = over = each.over(now)
                self._store.risks.change(over, epoch)
            elif each.is_at_risk or is_held or not each.is_written:
                left[uuid] = each
            else:
                self._store.risks.remove(uuid, epoch)
        return left

    def _new_warning(
        self,
        next_victim: next_module.NextVictim,
        server: nova_module.Server,
        now: float,
    ) -> risk.EvictionRisk:
        """Return a new warning for a server that would be evicted next."""
        return risk.EvictionRisk(
            server.uuid,
            server.project,
            server.user,
            risk.RiskState.AT_RISK,
            next_victim.why(reason.Reason.AT_RISK),
            now,
            now,
        )

    def _send_warning(
        self, warning: risk.EvictionRisk, log_name: str, epoch: int
    ) -> None:
        """Send a warning by all channels, and store that it was sent."""
        try:
            self._channels.send_warning(warning)
        except exception.CloudRefused as error:
            # In some states of a server Nova takes no metadata. Notifications
            # have told the owner.
            LOG.warning('server %s: %s', log_name, error)
        self._store.risks.change(warning.written(), epoch)

    def _withdraw_warning(self, uuid: str, log_name: str, epoch: int) -> None:
        """Withdraw the warning of a server that is evicted: the eviction
        notice replaces it.
        """
        try:
            self._channels.withdraw_warning(uuid)
        except exception.CloudRefused as error:
            LOG.warning('server %s: %s', log_name, error)
        self._store.risks.remove(uuid, epoch)
