# SPDX-License-Identifier: Apache-2.0

"""Time limits: evicts servers at the end of their allowed run time."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import pace
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.shares import budgets

LOG = logging.getLogger(__name__)

_S = request_model.State
_SPARED = eviction.EvictionState.SPARED
_EXTENDED = eviction.UNTOUCHED | {_SPARED}
_KEPT = frozenset(
    {eviction.EvictionState.STAYS, eviction.EvictionState.RETURNED}
)
"""States in which a server runs after an eviction for another reason."""
_OWN = frozenset({eviction.EvictionCause.TIME_LIMIT})
_STARTED = (_S.SENDING, _S.STARTING, _S.ACTIVE)

_SETTLED_AT_ONCE = 100
"""Largest number of servers that are evicted or spared in one cycle."""


@dataclasses.dataclass(frozen=True)
class TimeLimitOptions:
    """Options that operators set.

    :ivar actions: actions of Nova, tried one after the other until the room is
        free.
    :ivar extension_s: total time by which a request can be extended, in
        seconds; 0: no extension.
    """

    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
        eviction.EvictionAction.STOP,
    )
    extension_s: float = 0.0

    @property
    def frees(self) -> bool:
        """Return whether an action frees room, so that planners can count on
        it.
        """
        return any(each.frees for each in self.actions)


@dataclasses.dataclass(frozen=True, slots=True)
class TimeLimit:
    """The time at which a server must leave.

    :ivar at: seconds of the epoch.
    :ivar request: request with the time limit.
    """

    at: float
    request: request_model.Request


def time_limits_by_server(
    open_requests: Iterable[records.RequestRecord], now: float
) -> dict[str, TimeLimit]:
    """Return the time limits of servers by UUID; servers without a time limit
    are missing.

    After a server was unshelved, its newest request counts, unless the server
    had its room all the time.

    :param open_requests: requests that have not ended, the oldest first.
    :param now: seconds of the epoch; requests that are starting count from
        this time.
    """
    made: dict[str, TimeLimit] = {}
    for record in open_requests:
        request = record.request
        if request.state not in _STARTED or request.keeps_room:
            continue
        started = request.state is _S.ACTIVE
        at = request.ends_at(record.changed_at if started else now)
        for server in request.servers:
            made.pop(server, None)
            if at is not None:
                made[server] = TimeLimit(at, request)
    return made


class TimeLimits:
    """Evicts servers that reach their time limit.

    :param server_evictor: evicts servers.
    :param rules: options of operators.
    :param notice_s: seconds from the notice to the time limit.
    """

    def __init__(
        self,
        server_evictor: evictor.Evictor,
        rules: TimeLimitOptions,
        notice_s: float,
    ) -> None:
        self._to = server_evictor
        self._rules = rules
        self._notice_s = notice_s
        self._turn = 0

    def release_times(
        self,
        limits: Mapping[str, TimeLimit],
        leaves: cycle_evictions.CycleEvictions,
    ) -> dict[str, float]:
        """Return the latest times at which servers free their room, by UUID.

        :param limits: time limits of servers.
        :param leaves: evictions of the cycle, with these servers.
        """
        times = {server: each.at for server, each in limits.items()}
        for server, leave in leaves.of_servers(limits).items():
            is_own = leave.cause in _OWN
            if is_own and leave.state is eviction.EvictionState.STAYS:
                times.pop(server, None)
            elif leave.state in eviction.GOING:
                times[server] = leave.at
        return times if self._rules.frees else {}

    def with_effective_limit(
        self, request: request_model.Request
    ) -> request_model.Request:
        """Return the request for planners: without a time limit if the end of
        its servers frees no room.
        """
        if request.time_limit_s is None or self._rules.frees:
            return request
        return dataclasses.replace(request, time_limit_s=None)

    def charge_extension(
        self,
        record: records.RequestRecord,
        by_s: float,
        snapshot: cluster.ClusterSnapshot,
        leaves: Iterable[eviction.Eviction],
        now: float,
    ) -> cluster.ClusterSnapshot:
        """Check that a request can be extended, and charge its budgets.

        :param by_s: length of the extension, in seconds.
        :param snapshot: snapshot of the last cycle.
        :param leaves: evictions of the servers of the request.
        :param now: seconds of the epoch.
        :returns: the snapshot with the remaining budgets.
        :raises IllegalStep: if the request has no time limit, may not run that
            much longer, its servers are already being evicted, or a budget is
            too small.
        """
        self._check_extension(record.request, by_s, leaves)
        if record.request.state not in _STARTED:
            # Budgets are charged when the request starts.
            return snapshot
        spending = budgets.BudgetUse(snapshot.budgets, snapshot.accounts)
        is_active = record.request.state is _S.ACTIVE
        since = record.changed_at if is_active else now
        lack = spending.extension_lack(record.request, since, by_s)
        if lack:
            raise exception.IllegalStep(
                f'request {record.request.uuid} is not extended:'
                f' {_missing_budget_text(lack, record.request)}'
            )
        spending.take_extension(record.request, since, by_s)
        return dataclasses.replace(snapshot, budgets=spending.left())

    def _check_extension(
        self,
        request: request_model.Request,
        by_s: float,
        leaves: Iterable[eviction.Eviction],
    ) -> None:
        """Check that the state of a request and its evictions allow an
        extension.

        :raises IllegalStep: if they do not.
        """
        most_s = self._rules.extension_s
        if request.state in request_model.FINAL:
            raise exception.IllegalStep(
                f'request {request.uuid} is not extended: it is'
                f' {request.state.value}'
            )
        if request.time_limit_s is None:
            raise exception.IllegalStep(
                f'request {request.uuid} is not extended: it has no time limit'
            )
        if request.extended_s + by_s > most_s:
            raise exception.IllegalStep(
                f'request {request.uuid} is not extended: {most_s:g} s is the'
                ' limit of all extensions together, and it was already'
                f' extended by {request.extended_s:g} s'
            )
        for leave in leaves:
            came_to_stay = leave.cause not in _OWN and leave.state in _KEPT
            if not came_to_stay and leave.state not in _EXTENDED:
                raise exception.IllegalStep(
                    f'request {request.uuid} is not extended: its server'
                    f' {leave.server} is already being evicted'
                )

    def apply(
        self,
        limits: Mapping[str, TimeLimit],
        servers: Mapping[str, nova.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> None:
        """Start evictions of servers close to their time limit, and spare
        servers whose limit moved back.

        :param limits: time limits of servers.
        :param servers: all servers, by UUID.
        :param leaves: evictions of the cycle.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        near = [
            server
            for server, end in limits.items()
            if end.at - self._notice_s <= now
        ]
        left_by = leaves.of_servers(near) | leaves.in_states(eviction.LIVE)
        left, self._turn = _SETTLED_AT_ONCE, self._turn + 1
        for server in pace.interleave_by_owner(
            sorted({*near, *left_by} & servers.keys()),
            lambda uuid: servers[uuid].project,
            self._turn,
        ):
            leave, end = left_by.get(server), limits.get(server)
            do, found = self._evict_or_spare, servers[server]
            left -= evictor.attempt_for_server(
                found.log_name, do, leave, end, found, epoch
            )
            if not left:
                return

    def _evict_or_spare(
        self,
        leave: eviction.Eviction | None,
        limit: TimeLimit | None,
        server: nova.Server,
        epoch: int,
    ) -> bool:
        """Evict or spare a server; return ``False`` if neither is needed."""
        if leave and _is_to_be_spared(leave, limit):
            self._to.spare(leave, epoch)
            return True
        if (
            limit
            and limit.request.state is _S.ACTIVE
            and _is_to_be_evicted(leave, server)
        ):
            limit_s = limit.request.time_limit_s or 0.0
            why = reason.why(
                reason.Reason.TIME_IS_UP,
                limit_s=limit_s + limit.request.extended_s,
            )
            self._to.start_eviction(
                server,
                eviction.EvictionCause.TIME_LIMIT,
                why,
                self._rules.actions,
                epoch,
                limit.at,
            )
            return True
        return False


def _is_to_be_spared(
    leave: eviction.Eviction, limit: TimeLimit | None
) -> bool:
    """Return whether an announced eviction must end: the limit is removed, or
    later than announced.
    """
    return (
        leave.cause in _OWN
        and leave.state in eviction.UNTOUCHED
        and (limit is None or limit.at > leave.at)
    )


def _is_to_be_evicted(
    leave: eviction.Eviction | None, server: nova.Server
) -> bool:
    """Return whether a server close to its time limit must be evicted, maybe
    for the second time.
    """
    if leave is None or leave.state is _SPARED:
        return bool(server.host)
    # The owner started the server again.
    runs = server.status == 'ACTIVE' and bool(server.host)
    return runs and leave.state in eviction.FINAL


def _missing_budget_text(
    lack: budgets.BudgetLack, request: request_model.Request
) -> str:
    """Return why a request cannot be extended, in words for members of its
    project.
    """
    why = reason.why(
        reason.Reason.BUDGET_SPENT,
        lack.account,
        asked=round(lack.asked_s / budgets.HOUR_S, 1),
        left=round(lack.left_s / budgets.HOUR_S, 1),
    )
    return reason.readable_reason(
        why, reason.Audience.MEMBER, request.project
    ).sentence
