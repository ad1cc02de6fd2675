# SPDX-License-Identifier: Apache-2.0

"""Idle reclaim: evicts servers that were idle for days.

Agents report idle servers. Owners get a notice long before the first action. A
server that becomes busy again is spared. Servers of owners over their shares
are evicted first, and after a shorter idle time.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math

from oslo_log import log as logging

from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.shares import overview

LOG = logging.getLogger(__name__)

EVEN = 0.5
"""Factor of an account that used exactly its share."""

SOONEST = 0.25
"""Smallest fraction of the idle time after which a server gets a notice; it
applies to accounts far over their shares.
"""

AT_ONCE = 20
"""Largest number of servers that get a notice in one cycle, so that a
measuring error of agents does not empty a cloud.
"""

SURE_S = 900.0
"""Seconds before the end of a notice at which a report must confirm that the
server is still idle.
"""

_HOUR_S = 3600.0
_RUNS = frozenset({'ACTIVE', 'PAUSED'})

Told = Mapping[str, Mapping[str, float]]
"""Seconds for which servers have been idle, by host and by UUID of the server.
"""


@dataclasses.dataclass(frozen=True)
class IdleOptions:
    """Options that operators set.

    :ivar after_s: idle time after which a server is evicted, in seconds; 0: no
        server is evicted.
    :ivar notice_s: seconds from the notice to the first action.
    :ivar actions: actions of Nova, tried one after the other until the room is
        free.
    :ivar spared: projects whose servers are never evicted.
    :raises ValueError: if a time is out of its range.
    """

    after_s: float = 0.0
    notice_s: float = 86400.0
    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
        eviction.EvictionAction.STOP,
    )
    spared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        least_s = evictor.LEAST_NOTICE_S
        if not (
            0 <= self.after_s < math.inf
            and least_s <= self.notice_s < math.inf
        ):
            raise ValueError(
                f'the idle time must be at least 0 s, got {self.after_s:g} s;'
                f' its notice at least {least_s:g} s, got {self.notice_s:g} s'
            )

    def required_idle_s(self, factor: float) -> float:
        """Return the idle time, in seconds, after which a server of an account
        gets a notice.

        :param factor: factor of the account, 0 to 1; see
            :class:`.AccountStanding`.
        """
        return self.after_s * min(max(factor / EVEN, SOONEST), 1.0)


class IdleReclaim:
    """Evicts idle servers.

    :param server_evictor: evicts servers.
    :param read_reports: returns the latest reports of the agents of some
        hosts; it never blocks.
    :param rules: options of operators.
    :ivar count: number of servers that have been idle for long enough.
    """

    def __init__(
        self,
        server_evictor: evictor.Evictor,
        read_reports: Callable[[Collection[str]], Told],
        rules: IdleOptions,
    ) -> None:
        self._to = server_evictor
        self._told = read_reports
        self._rules = rules
        self._left_over = True
        self.count = 0

    def apply(
        self,
        snapshot: cluster.ClusterSnapshot,
        open_requests: Iterable[records.RequestRecord],
        servers: Mapping[str, nova.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> None:
        """Start evictions of servers that were idle for too long, and spare
        servers that are busy again.

        :param open_requests: requests that have not ended.
        :param servers: all servers, by UUID.
        :param leaves: evictions of the cycle.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        if not (self._rules.after_s or self._left_over):
            return
        here = (
            self._reclaimable_servers(open_requests, servers)
            if self._rules.after_s
            else {}
        )
        told = self._told({each.host for each in here.values()})
        live = leaves.in_states(eviction.LIVE)
        for leave in live.values():
            if self._is_to_be_spared(leave, here.get(leave.server), told, now):
                named = self._to.log_name(leave.server)
                evictor.attempt_for_server(named, self._to.spare, leave, epoch)
        # After the option was switched off, servers with a notice are spared
        # once.
        self._left_over = False
        chosen = self._idle_long_enough(snapshot, here, told, now)
        self.count = len(chosen)
        new = [each for each in chosen if each[0].uuid not in live]
        for server, idle_s in new[:AT_ONCE]:
            evictor.attempt_for_server(
                server.log_name,
                self._start_eviction,
                server,
                idle_s,
                now,
                epoch,
            )

    def _reclaimable_servers(
        self,
        open_requests: Iterable[records.RequestRecord],
        servers: Mapping[str, nova.Server],
    ) -> dict[str, nova.Server]:
        """Return the running servers that may be reclaimed, by UUID.

        Preemptible servers are excluded, because they can be preempted.
        """
        preemptible = records.preemptible_servers(open_requests)
        return {
            uuid: each
            for uuid, each in servers.items()
            if each.host
            and each.status in _RUNS
            and each.project not in self._rules.spared
            and uuid not in preemptible
        }

    def _is_to_be_spared(
        self,
        leave: eviction.Eviction,
        server: nova.Server | None,
        reports: Told,
        now: float,
    ) -> bool:
        """Return whether a server with a notice must be spared, because it is
        or may be busy again.
        """
        if leave.cause is not eviction.EvictionCause.IDLE or (
            leave.state not in eviction.UNTOUCHED
        ):
            return False
        if server is None or not self._rules.after_s:
            return True
        if server.host not in reports:
            return leave.at - now < SURE_S
        idle_s = reports[server.host].get(server.uuid, 0.0)
        return idle_s < SOONEST * self._rules.after_s

    def _idle_long_enough(
        self,
        snapshot: cluster.ClusterSnapshot,
        reclaimable: Mapping[str, nova.Server],
        reports: Told,
        now: float,
    ) -> list[tuple[nova.Server, float]]:
        """Return servers that were idle for long enough, with their idle time
        in seconds.

        Servers of accounts that are furthest over their shares come first.
        """
        least_s = SOONEST * self._rules.after_s
        idle = [
            each
            for each in _reported_idle(reclaimable, reports, now)
            if 0 < least_s <= each[1]
        ]
        if not idle:
            return []
        factors = {
            each.account.name: each.factor
            for each in overview.standings(snapshot)
        }
        judged = [
            (_account_factor(server, factors), -idle_s, server.uuid, server)
            for server, idle_s in idle
        ]
        return [
            (server, -minus_s)
            for factor, minus_s, _, server in sorted(judged)
            if -minus_s >= self._rules.required_idle_s(factor)
        ]

    def _start_eviction(
        self,
        server: nova.Server,
        idle_s: float,
        now: float,
        epoch: int,
    ) -> None:
        """Start the eviction of an idle server."""
        self._to.start_eviction(
            server,
            eviction.EvictionCause.IDLE,
            reason.why(reason.Reason.IDLE, idle_h=idle_s / _HOUR_S),
            self._rules.actions,
            epoch,
            now + self._rules.notice_s,
        )


def _reported_idle(
    reclaimable: Mapping[str, nova.Server], reports: Told, now: float
) -> Iterator[tuple[nova.Server, float]]:
    """Yield servers that the agent of their own host reports as idle, with
    their idle time in seconds.
    """
    for host, idle in reports.items():
        for uuid, idle_s in idle.items():
            server = reclaimable.get(uuid)
            if server is not None and server.host == host:
                # No server is idle for longer than it runs.
                begin = server.launched_at
                runs_s = math.inf if begin is None else max(now - begin, 0.0)
                yield server, min(idle_s, runs_s)


def _account_factor(
    server: nova.Server, factors: Mapping[str, float]
) -> float:
    """Return the factor of a server's user or, without it, of the project."""
    of_project = factors.get(server.project, 1.0)
    return factors.get(f'{server.project}/{server.user}', of_project)
