# SPDX-License-Identifier: Apache-2.0

"""Dispatch: execute the actions of a plan, one request at a time.

Placement stores a reservation of room only while the request is in the state
``reserved``. This service releases the reservation just before it sends the
message, because Nova then claims the room itself. Until Nova has claimed it,
the snapshot counts the room as used on the hosts of the request.

A message is sent only after the state ``sending`` is committed. A new leader
never sends a request in that state again: it reads from Nova whether the
message arrived. The message is stored until Nova shows work on the request. If
Nova shows no work for long, and the broker and Placement confirm that Nova
does not have the request, the request waits again.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import functools
import sys

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.cluster.openstack import tokens as tokens_module
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cast as cast_module
from nova_fairness.model import cluster
from nova_fairness.model import plans
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

_ONE_BY_ONE = 20
"""Largest number of servers of a request that are read one by one; for more
servers, one list is read.
"""

_RUNS_ALREADY = 'request %s is not sent: its server runs already: server %s'
_CLEANS_UP = (
    'request %s ends: server %s was deleted while the request waited; Nova'
    ' gets the message of the request, to delete its records of the server'
)

_E, _S, _R = request_model.Event, request_model.State, reason.Reason
_SENT = reason.why(_R.SENT)


class Sender(abc.ABC):
    """Sends messages to Nova's conductor."""

    @abc.abstractmethod
    def connect(self) -> None:
        """Connect to the broker, so that a message can be sent.

        :raises BrokerAway: if the connection fails; no message was sent.
        """

    @abc.abstractmethod
    def send(self, cast: cast_module.Cast) -> None:
        """Send a message unchanged, and wait until the broker confirms it.

        :raises NoListener: if the message certainly did not arrive.
        :raises BrokerAway: if it is unknown whether the message was sent.
        """

    @abc.abstractmethod
    def is_drained(self) -> bool:
        """Return whether Nova listens, and the broker has no undelivered
        message for it.

        :raises BrokerAway: if that cannot be determined.
        """


class RequestDispatcher:
    """Executes the actions of a plan.

    :param store: stores requests and their messages.
    :param placement: stores reservations of room.
    :param nova: reads and deletes servers.
    :param tokens: checks whether a user's token is still valid.
    :param sender: sends messages to Nova.
    :param clock: returns seconds of the epoch.
    :param binds: whether servers must run on their planned hosts, and on no
        other host.
    """

    def __init__(
        self,
        store: store_module.Store,
        placement: placement_module.Placement,
        nova: nova_module.Nova,
        tokens: tokens_module.TokenValidator,
        sender: Sender,
        clock: Callable[[], float],
        *,
        binds: bool = False,
    ) -> None:
        self._binds = binds
        self._deleted: dict[str, set[str]] = {}
        self._store = store
        self._placement = placement
        self._nova = nova
        self._tokens = tokens
        self._sender = sender
        self._clock = clock

    def carry_out(
        self,
        action: cluster.Action,
        record: records.RequestRecord,
        view: snapshot_module.CloudView,
        forbidden_hosts: frozenset[str],
        epoch: int,
    ) -> None:
        """Execute one action, unless its request has changed since the plan.

        :param forbidden_hosts: names of hosts that Nova must not choose for
            the request; see :meth:`forbidden_hosts`.
        :raises CloudError: if Nova or Placement fails; a later cycle repairs
            the request.
        :raises BrokerAway: if the broker fails; a later cycle repairs the
            request.
        :raises StoreError: if the store refuses a step, or another process
            made the step first.
        """
        if action.version != record.request.version:
            raise exception.Outdated(
                f'request {action.request} changed after the plan was made:'
                ' the next plan decides again'
            )
        if action.verb is cluster.Verb.EXPIRE:
            self._store.step(
                record.request, _E.EXPIRE, epoch, action.why, self._clock()
            )
            LOG.info(
                'request %s expires: server %s: %s',
                record.request.uuid,
                self._server_names(record.request),
                action.why.sentence,
            )
            return
        if action.verb is cluster.Verb.PASS:
            self.send_unplanned(record, action.why, epoch)
            return
        # Connect before room is kept: without a broker, every cycle would keep
        # the room and free it again.
        self._sender.connect()
        trees = [view.trees[host] for host in action.hosts]
        reserved = self._reserve_room(record.request, trees, action.why, epoch)
        if reserved is not None:
            without = functools.partial(
                parser.with_excluded_hosts, hosts=forbidden_hosts
            )
            self._send(
                reserved, record.cast_uuid, action.hosts, epoch, without, _SENT
            )

    def forbidden_hosts(
        self,
        plan: cluster.Plan,
        open_requests: Iterable[records.RequestRecord],
        view: snapshot_module.CloudView,
    ) -> Callable[[cluster.Action], frozenset[str]]:
        """Return a function that maps an action to the hosts that Nova must
        not choose for its request.

        Placement cannot reserve future room, and two simultaneous claims for
        the last room of a host may both succeed. So a request must not get a
        host with room of another request. The remaining hosts are divided
        among the requests that start now, and Nova chooses from them.

        :param plan: the plan with these actions.
        :param open_requests: requests that have not ended.
        :returns: function from an action to names of hosts.
        """
        kept = _reserved_hosts(plan, open_requests, view)
        starts = [
            each.key
            for each in plan.actions
            if each.verb is cluster.Verb.START
        ]
        turns = {key: n for n, key in enumerate(starts)}
        free = [] if self._binds else sorted(view.trees.keys() - kept)
        all_ = frozenset(kept.union(view.trees))

        def forbidden_for(action: cluster.Action) -> frozenset[str]:
            own = free[turns.get(action.key, 0) :: max(len(turns), 1)]
            return all_.difference(action.hosts, own)

        return forbidden_for

    def clean_up(
        self, record: records.RequestRecord, limit: int = sys.maxsize
    ) -> tuple[int, bool]:
        """Delete the servers and the message of a request that no longer needs
        its message.

        The servers of a cancelled or expired build are deleted first. Then its
        message is sent with a host that does not exist: Nova builds nothing,
        and deletes its own records of the servers. Sending the message twice
        is harmless.

        :param limit: largest number of servers to delete in this call, > 0.
        :returns: number of servers deleted in this call, and whether the
            cleanup is complete. If it is not complete, call this method again.
        """
        request, deleted = record.request, 0
        if request.state in (_S.CANCELLED, _S.EXPIRED):
            if request.uuid not in self._deleted:
                self._placement.release(request)
            if request.origin is request_model.Origin.BUILD:
                deleted, is_done = self._delete_servers(request, limit)
                if not is_done:
                    return deleted, False
                self._send_cleanup_message(record.cast_uuid)
        self._store.delete_message(record.cast_uuid)
        return deleted, True

    def _delete_servers(
        self, request: request_model.Request, limit: int = sys.maxsize
    ) -> tuple[int, bool]:
        """Delete at most ``limit`` servers of a request; Nova has no call that
        deletes several.

        :returns: number of servers deleted in this call, and whether all
            servers are deleted.
        :raises CloudAway: if a server still exists after all were deleted.
        """
        asked = self._deleted.setdefault(request.uuid, set())
        left = [
            uuid
            for uuid in request.servers
            if uuid not in asked and not self._nova.is_deleted(uuid)
        ]
        for uuid in left[:limit]:
            self._nova.delete(uuid)
            asked.add(uuid)
        if len(left) > limit:
            return limit, False
        del self._deleted[request.uuid]
        alive = [u for u in request.servers if not self._nova.is_deleted(u)]
        still = self._nova.existing_servers(request.project, alive)
        if still:
            raise exception.CloudAway(
                f'server {min(still)} still exists after its deletion: the'
                ' next cycle tries again'
            )
        return len(left), True

    def _send_cleanup_message(self, cast_uuid: str) -> None:
        """Send a build message once more, so that Nova deletes its records of
        the servers.
        """
        cast = self._store.read_message(cast_uuid)
        if cast:
            self._sender.connect()
            self._sender.send(parser.with_nonexistent_host(cast))

    def send_unplanned(
        self,
        record: records.RequestRecord,
        why: reason.Why,
        epoch: int,
        *,
        is_gone: bool = False,
    ) -> None:
        """Send a waiting request to Nova without a reservation of room.

        :param is_gone: whether its servers are deleted, so that Nova only
            cleans up.
        """
        self._sender.connect()
        now = self._clock()
        kept = self._store.step(record.request, _E.RESERVE, epoch, why, now)
        changed = parser.with_nonexistent_host if is_gone else _same_message
        because = why if is_gone else _SENT
        self._send(kept, record.cast_uuid, (), epoch, changed, because)

    def release_leftover_room(self, request: request_model.Request) -> None:
        """Release a reservation in Placement that a process left when it died
        or was late.
        """
        if self._placement.has_reservation(request):
            self._placement.release(request)

    def requeue_if_lost(
        self, record: records.RequestRecord, epoch: int
    ) -> bool:
        """Return a request to the queue if Nova certainly does not have it.

        Call this only long after the request was sent: right after Nova has
        received a message, no API shows it yet.

        :returns: whether the request waits again; ``False`` if Nova may have
            it.
        """
        request = record.request
        if not self._sender.is_drained() or (
            request.demand.amounts
            and any(self._placement.has_allocation(u) for u in request.servers)
        ):
            return False
        self.requeue_unsent(record, epoch)
        return True

    def requeue_unsent(
        self, record: records.RequestRecord, epoch: int
    ) -> None:
        """Return a request to the queue that Nova certainly does not have."""
        why = reason.why(_R.ROOM_LOST)
        now = self._clock()
        back = self._store.step(record.request, _E.RETURN, epoch, why, now)
        LOG.warning(
            'request %s waits again: Nova does not have it: server %s',
            back.uuid,
            self._server_names(back),
        )
        self.requeue_reserved(dataclasses.replace(record, request=back), epoch)

    def requeue_reserved(
        self, record: records.RequestRecord, epoch: int
    ) -> None:
        """Return a reserved request that was not sent to the queue, and
        release its room.
        """
        self._placement.release(record.request)
        why = reason.why(_R.ROOM_LOST)
        now = self._clock()
        self._store.step(record.request, _E.LOSE, epoch, why, now)

    def _reserve_room(
        self,
        request: request_model.Request,
        trees: Iterable[placement_module.ProviderTree],
        why: reason.Why,
        epoch: int,
    ) -> request_model.Request | None:
        """Reserve room for a request; return ``None`` if the room is no longer
        free.
        """
        now = self._clock()
        # Write the row first: room without a row would be kept for ever.
        kept = self._store.step(request, _E.RESERVE, epoch, why, now)
        try:
            self._placement.reserve(kept, trees)
        except exception.CloudRefused as error:
            LOG.info(
                'request %s waits again: its room was used by others: server'
                ' %s: %s',
                request.uuid,
                self._server_names(request),
                error,
            )
            lost = reason.why(_R.ROOM_LOST)
            self._store.step(kept, _E.LOSE, epoch, lost, self._clock())
            return None
        return kept

    def _send(
        self,
        reserved: request_model.Request,
        cast_uuid: str,
        hosts: tuple[str, ...],
        epoch: int,
        change_message: Callable[[cast_module.Cast], cast_module.Cast],
        why: reason.Why,
    ) -> None:
        """Release the reserved room of a request, and send its message to
        Nova.

        :param change_message: returns the message that Nova gets.
        """
        cast = self._checked_message(reserved, cast_uuid, epoch)
        if cast is None:
            return
        is_build = reserved.origin is request_model.Origin.BUILD
        # After an old backup was restored, this build may be done already.
        # Conductor would delete it.
        started = any(
            each.is_settled if is_build else each.host
            for each in self.existing_servers(reserved)
        )
        # Before the state changes: a message that cannot be rewritten must not
        # look as if it was sent.
        written = change_message(cast)
        try:
            sending = self._store.step(
                reserved, _E.SEND, epoch, why, self._clock(), hosts
            )
        except (exception.Outdated, exception.Deposed):
            # The process that changed the request may have freed its room
            # before this process kept it.
            self._placement.release(reserved)
            raise
        try:
            self._placement.release(reserved)
            if started:
                LOG.error(
                    _RUNS_ALREADY, reserved.uuid, self._server_names(reserved)
                )
            else:
                self._sender.send(written)
        except (exception.CloudError, exception.NoListener):
            # The next cycle lets it wait again.
            self._store.step(sending, _E.RETURN, epoch, why, self._clock())
            raise
        self._store.step(sending, _E.SENT, epoch, why, self._clock())
        self._log_sent(reserved, hosts, why)

    def _checked_message(
        self, reserved: request_model.Request, cast_uuid: str, epoch: int
    ) -> cast_module.Cast | None:
        """Return the message of a request that is about to be sent.

        :returns: ``None`` if the message is lost or its token is refused; then
            the dispatch is abandoned.
        """
        cast = self._store.read_message(cast_uuid)
        is_build = reserved.origin is request_model.Origin.BUILD
        if cast is None:
            self._abandon_dispatch(reserved, _E.FAIL, _R.START_FAILED, epoch)
            if is_build:
                self._delete_servers(reserved)
            return None
        # For builds only: a server that cannot be unshelved stays shelved.
        if is_build and not self._tokens.is_accepted(parser.user_token(cast)):
            self._abandon_dispatch(
                reserved, _E.EXPIRE, _R.TOKEN_REFUSED, epoch
            )
            return None
        return cast

    def _log_sent(
        self,
        reserved: request_model.Request,
        hosts: tuple[str, ...],
        why: reason.Why,
    ) -> None:
        named = self._server_names(reserved)
        if why.reason is _R.SERVER_DELETED:
            LOG.info(_CLEANS_UP, reserved.uuid, named)
            return
        to = plans.shortened_list(sorted(set(hosts))) or 'any host'
        LOG.info(
            'request %s was sent to %s: server %s', reserved.uuid, to, named
        )

    def _abandon_dispatch(
        self,
        reserved: request_model.Request,
        event: request_model.Event,
        reason_token: reason.Reason,
        epoch: int,
    ) -> None:
        """Release the room of a reserved request, and store the event that
        ends its dispatch.
        """
        self._placement.release(reserved)
        why = reason.why(reason_token)
        self._store.step(reserved, event, epoch, why, self._clock())
        LOG.warning(
            'request %s ends without being sent: server %s: %s',
            reserved.uuid,
            self._server_names(reserved),
            why.sentence,
        )

    def _server_names(self, request: request_model.Request) -> str:
        """Return the names of the servers of a request, for the log."""
        return plans.shortened_list(
            [*map(self._nova.log_name, request.servers)]
        )

    def existing_servers(
        self, request: request_model.Request
    ) -> list[nova_module.Server]:
        """Return the servers of a request that exist in Nova now.

        Many servers are read in one list: one call per server would take
        longer than the lease of a leader.
        """
        if len(request.servers) <= _ONE_BY_ONE:
            looked = [self._nova.server(uuid) for uuid in request.servers]
        else:
            with clients.parsing("Nova's list of servers"):
                listed = self._nova.servers(self._clock())
            looked = [listed.get(uuid) for uuid in request.servers]
        return [each for each in looked if each is not None]


def _reserved_hosts(
    plan: cluster.Plan,
    open_requests: Iterable[records.RequestRecord],
    view: snapshot_module.CloudView,
) -> set[str]:
    """Return the names of hosts on which a request has room.

    The room is reserved, or the request is sent there now, or the request was
    sent there and Nova has not claimed the room yet.
    """
    hosts = {host for each in plan.actions for host in each.hosts}
    for waiting in plan.waiting.values():
        if waiting.reserved is not None:
            hosts.update(waiting.reserved.hosts)
    for record in open_requests:
        if record.request.state in (_S.SENDING, _S.STARTING):
            pairs = zip(record.request.servers, record.hosts, strict=False)
            hosts.update(
                host
                for uuid, host in pairs
                if uuid in view.servers and not view.servers[uuid].host
            )
    return hosts


def _same_message(cast: cast_module.Cast) -> cast_module.Cast:
    return cast


def next_event(
    record: records.RequestRecord, servers: list[nova_module.Server]
) -> tuple[request_model.Event, reason.Why] | None:
    """Return the next event of a sent request and its reason; ``None`` if
    nothing changed.

    :param servers: servers of the request that exist.
    """
    request, statuses = record.request, {each.status for each in servers}
    if request.state is _S.SENDING:
        seen = any(each.is_settled for each in servers)
        return (_E.SENT, reason.why(_R.SENT)) if seen else None
    if not servers:
        return _E.END, reason.why(_R.SERVER_DELETED)
    if request.state is not _S.STARTING:
        return None
    if any(each.status == 'ERROR' and not each.host for each in servers):
        return _E.FAIL, reason.why(_R.NO_VALID_HOST)
    rests = any(
        each.status == 'SHELVED_OFFLOADED' and not each.task
        for each in servers
    )
    if 'ERROR' in statuses or rests:
        return _E.FAIL, reason.why(_R.START_FAILED)
    if statuses & {'BUILD', 'SHELVED_OFFLOADED', 'SHELVED'}:
        return None
    return _E.START, reason.why(_R.STARTED)
