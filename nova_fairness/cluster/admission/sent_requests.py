# SPDX-License-Identifier: Apache-2.0

"""Tracks sent requests until their servers run, failed, or were deleted.

Lists of servers may be old or partial. So a server that is missing from a list
is read alone before its request ends. If Nova shows no work on a request for
long, the request is in doubt: a check then decides whether it returns to the
queue.
"""

from collections.abc import Mapping

from nova_fairness.cluster import collaborators
from nova_fairness.cluster import cycle_parts
from nova_fairness.cluster import pace
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.store import records
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

_S = request_model.State
_Seen = tuple[records.RequestRecord, list[nova_module.Server]]
"""A request, and the servers of it that exist."""

_UNREADABLE = reason.Reason.UNREADABLE

SENT_AT_ONCE = 200
"""Largest number of requests sent in one cycle. Sending a request takes the
same number of calls for any number of servers.
"""

_ASKED_AT_ONCE = 200
"""Largest number of missing servers that are read in one cycle."""

_ASKS_AGAIN_S = 60.0
"""Seconds between two checks of a request in doubt."""

_ENOUGH = 20
"""Number of servers of a request that are read to determine its next state."""

_CALLS_OF_ONE = 5
"""Number of calls to send one request."""


class SentRequestTracker:
    """Updates the states of sent requests in each cycle.

    :param services: services that the cycle uses.
    :param parts: executes the parts of a cycle.
    :param doubt_after_s: seconds without work of Nova on a sent request, after
        which a check determines whether Nova has the request.
    """

    def __init__(
        self,
        services: collaborators.Collaborators,
        parts: cycle_parts.CycleParts,
        doubt_after_s: float,
    ) -> None:
        self._store, self._nova = services.store, services.nova
        self._executor, self._parts = services.executor, parts
        self._clock, self._monotonic = services.clocks.now, services.monotonic
        self._doubt_s = doubt_after_s
        self._doubted: dict[str, float] = {}
        self._turn = 0

    def update_states(
        self,
        open_requests: list[records.RequestRecord],
        servers: Mapping[str, nova_module.Server],
        epoch: int,
        lists_waiting: bool,
    ) -> None:
        """Update the states of sent requests, and send requests whose servers
        were deleted for cleanup.

        :param open_requests: all requests that have not ended.
        :param servers: servers of Nova's list, by UUID.
        :param epoch: epoch of the leader.
        :param lists_waiting: whether the list includes servers of waiting
            requests.
        """
        self._turn += 1
        seen: list[_Seen] = []
        absent = []
        for record in open_requests:
            request = record.request
            there = [
                servers[uuid] for uuid in request.servers if uuid in servers
            ]
            if there:
                seen.append((record, there))
            elif request.state not in request_model.UNSENT or (
                lists_waiting
                and request.state is _S.WAITING
                and not record.fault
                and record.why.reason is not _UNREADABLE
            ):
                absent.append(record)
        self._update_listed(seen, epoch)
        self._look_up_absent(absent, epoch)

    def _update_listed(self, seen: list[_Seen], epoch: int) -> None:
        """Update requests whose servers are in the list, until the time of the
        cycle is used up.

        The remaining requests are updated in the next cycle.
        """
        sends, asks = (
            self._parts.budget(SENT_AT_ONCE),
            self._parts.budget(_ASKED_AT_ONCE),
        )
        why = reason.why(reason.Reason.SENT)
        for record, there in pace.interleave_by_owner(
            seen, lambda each: each[0].request.project, self._turn
        ):
            request = record.request
            if not asks.is_in_time:
                return
            if request.state not in request_model.UNSENT:
                self._parts.of_one(
                    record, self._update_request, record, there, asks, epoch
                )
            elif _nova_has_decided(request, there) and sends.take():
                # Nova has this request already, for example after an old
                # backup was restored. It is not sent again, and is followed
                # from now on.
                send = self._executor.send_unplanned
                self._parts.of_one(record, send, record, why, epoch)

    def _look_up_absent(
        self, absent: list[records.RequestRecord], epoch: int
    ) -> None:
        """Read servers that are missing from the list, some in each cycle.

        A list may be old or partial: a server counts as deleted only if Nova
        answered so for that server, or listed it as deleted. Such a server is
        not read again, so that large requests end, too.
        """
        begin = self._turn * _ASKED_AT_ONCE % max(len(absent), 1)
        budget = self._parts.budget(_ASKED_AT_ONCE)
        for record in pace.interleave_by_owner(
            absent[begin:] + absent[:begin],
            lambda each: each.request.project,
            self._turn,
        ):
            self._parts.of_one(
                record, self._look_up_one, record, budget, epoch
            )

    def _look_up_one(
        self,
        record: records.RequestRecord,
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        """Read the missing servers of one request, and update the request."""
        is_held = record.request.state is _S.WAITING
        there: list[nova_module.Server] = []
        for uuid in record.request.servers:
            if self._nova.is_deleted(uuid):
                continue
            if not budget.take():
                return
            found = self._nova.server(uuid)
            if found:
                there.append(found)
                if is_held or len(there) == _ENOUGH:
                    break
        if not is_held:
            self._update_request(record, there, budget, epoch)
        elif not there and budget.take(_CALLS_OF_ONE):
            why = reason.why(reason.Reason.SERVER_DELETED)
            self._executor.send_unplanned(record, why, epoch, is_gone=True)

    def _update_request(
        self,
        record: records.RequestRecord,
        servers: list[nova_module.Server],
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        """Store the next event of a request, or resolve its doubt."""
        request = record.request
        if request.state is _S.SENDING:
            self._executor.release_leftover_room(request)
        happened = dispatcher.next_event(record, servers)
        if happened is not None:
            event, why = happened
            self._store.step(request, event, epoch, why, self._clock())
        elif request.state is not _S.ACTIVE and not any(
            each.is_settled for each in servers
        ):
            # A running server that is about to be unshelved is not settled
            # either.
            self._resolve_doubt(record, servers, budget, epoch)
            return
        self._doubted.pop(request.uuid, None)

    def _resolve_doubt(
        self,
        record: records.RequestRecord,
        servers: list[nova_module.Server],
        budget: pace.WorkBudget,
        epoch: int,
    ) -> None:
        """Determine whether Nova has a request in doubt; if not, the request
        waits again.

        :param servers: servers of the request that exist.
        :param budget: number of servers that may still be read in this cycle.
        """
        request = record.request
        if not servers:
            # Nova only cleans up if the servers are gone. The servers of an
            # unreadable message are unknown.
            if not request.is_unread:
                self._executor.requeue_unsent(record, epoch)
            return
        now_s = self._monotonic()
        since_s = now_s - self._doubted.setdefault(request.uuid, now_s)
        is_due = since_s >= self._doubt_s
        if not is_due or not budget.take(len(request.servers)):
            return
        servers = self._executor.existing_servers(request)
        if any(each.is_settled for each in servers) or (
            not self._executor.requeue_if_lost(record, epoch)
        ):
            why = reason.why(
                reason.Reason.IN_DOUBT,
                since_s=max(self._clock() - record.changed_at, 0),
            )
            if why.reason is not record.why.reason:
                self._store.write_reasons(
                    [(request, why)], epoch, self._clock()
                )
            # Other requests are looked up during the pause.
            pause_s = min(_ASKS_AGAIN_S, self._doubt_s)
            self._doubted[request.uuid] += pause_s
            return
        del self._doubted[request.uuid]


def _nova_has_decided(
    request: request_model.Request, servers: list[nova_module.Server]
) -> bool:
    """Return whether Nova has already placed or rejected a server of a waiting
    build.
    """
    return (
        request.state is _S.WAITING
        and request.origin is request_model.Origin.BUILD
        and any(each.is_settled for each in servers)
    )
