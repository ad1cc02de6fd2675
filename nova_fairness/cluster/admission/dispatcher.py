# SPDX-License-Identifier: Apache-2.0

"""Dispatch: carrying out what was planned, one request at a time.

Room is kept in Placement while a request is ``reserved``, and only then. It
is given up just before the message leaves, since Nova claims the room itself;
until Nova has, the snapshot counts it on the hosts that were given.

A message leaves only after ``sending`` is committed. A leader that finds a
request in that state does not send it: it reads from Nova what happened. The
message is kept until Nova shows that it works on it. Where Nova shows nothing
for long, and broker and Placement show that it has nothing, the request waits
again.
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
"""Servers of one request."""

_RUNS_ALREADY = 'request %s runs already: it is not sent: server %s'
_CLEANS_UP = (
    'request %s ends: server %s: it was deleted while the request waited; Nova'
    ' gets the message to clean up'
)

_E, _S, _R = request_model.Event, request_model.State, reason.Reason
_SENT = reason.why(_R.SENT)


class Sender(abc.ABC):
    """Sends messages to conductor."""

    @abc.abstractmethod
    def connect(self) -> None:
        """Be ready to send.

        :raises BrokerAway: if that is not possible; nothing was sent.
        """

    @abc.abstractmethod
    def send(self, cast: cast_module.Cast) -> None:
        """Send a message as it came, and wait until the broker has it.

        :raises NoListener: if it is known that it did not arrive.
        :raises BrokerAway: if it is not known whether it left.
        """

    @abc.abstractmethod
    def is_drained(self) -> bool:
        """Tell whether Nova has taken all that was sent, and listens.

        :raises BrokerAway: if it is not known.
        """


class Executor:
    """Does what was planned.

    :param store: of requests.
    :param placement: where room is kept.
    :param nova: where servers are looked at.
    :param tokens: where tokens are looked at.
    :param sender: of messages.
    :param clock: seconds of the epoch.
    :param binds: whether servers lie where they were planned, and nowhere
        else.
    """

    def __init__(
        self,
        store: store_module.Store,
        placement: placement_module.Placement,
        nova: nova_module.Nova,
        tokens: tokens_module.Tokens,
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
        others: frozenset[str],
        epoch: int,
    ) -> None:
        """Do one action, if its request is still as it was.

        :param others: hosts on which its servers must not lie: :meth:`apart`.
        :raises CloudError: if Nova or Placement fails; it is made good later.
        :raises BrokerAway: if the broker fails; it is made good later.
        :raises StoreError: if the store did not take a step, or another did.
        """
        if action.version != record.request.version:
            raise exception.Outdated(
                f'{action.key} changed after the decision'
            )
        if action.verb is cluster.Verb.EXPIRE:
            self._store.step(
                record.request, _E.EXPIRE, epoch, action.why, self._clock()
            )
            LOG.info(
                'request %s expires: server %s: %s',
                record.request.uuid,
                self._named(record.request),
                action.why.sentence,
            )
            return
        if action.verb is cluster.Verb.PASS:
            self.send_unplanned(record, action.why, epoch)
            return
        # Before room is kept: without a broker it would come and go for ever.
        self._sender.connect()
        trees = [view.trees[host] for host in action.hosts]
        reserved = self._kept(record.request, trees, action.why, epoch)
        if reserved is not None:
            without = functools.partial(parser.without, hosts=others)
            self._send(
                reserved, record.cast_uuid, action.hosts, epoch, without, _SENT
            )

    def apart(
        self,
        planned: cluster.Plan,
        found: Iterable[records.RequestRecord],
        view: snapshot_module.CloudView,
    ) -> Callable[[cluster.Action], frozenset[str]]:
        """Keep requests apart: the hosts that one must not get.

        Placement keeps no room for the future, and two claims at once for the
        last room of a host may both be taken. So a request must not get a host
        with room of another request. The remaining hosts are divided among the
        requests that start, for Nova to choose from.

        :param found: requests that have not ended.
        """
        kept = _kept(planned, found, view)
        starts = [
            each.key
            for each in planned.actions
            if each.verb is cluster.Verb.START
        ]
        turns = {key: n for n, key in enumerate(starts)}
        free = [] if self._binds else sorted(view.trees.keys() - kept)
        all_ = frozenset(kept.union(view.trees))

        def others(action: cluster.Action) -> frozenset[str]:
            own = free[turns.get(action.key, 0) :: max(len(turns), 1)]
            return all_.difference(action.hosts, own)

        return others

    def clean_up(
        self, record: records.RequestRecord, most: int = sys.maxsize
    ) -> tuple[int, bool]:
        """Leave nothing of a request that does not need its message any more.

        Servers of one that was given up are deleted. Then its message is sent:
        Nova finds nothing to build, and throws away what it still knows of the
        servers. To send it twice does no harm.

        :param most: servers that are deleted now, > 0.
        :returns: how many were, and whether nothing is left of it. Else it is
            to be called again.
        """
        request, deleted = record.request, 0
        if request.state in (_S.CANCELLED, _S.EXPIRED):
            if request.uuid not in self._deleted:
                self._placement.free(request)
            if request.origin is request_model.Origin.BUILD:
                deleted, is_done = self._delete(request, most)
                if not is_done:
                    return deleted, False
                self._send_once_more(record.cast_uuid)
        self._store.forget(record.cast_uuid)
        return deleted, True

    def _delete(
        self, request: request_model.Request, most: int = sys.maxsize
    ) -> tuple[int, bool]:
        """Delete servers, some at a time; Nova has no call for many.

        :returns: how many were deleted now, and whether all are gone.
        :raises CloudAway: if one is still there after all were deleted.
        """
        asked = self._deleted.setdefault(request.uuid, set())
        left = [
            uuid
            for uuid in request.servers
            if uuid not in asked and not self._nova.is_gone(uuid)
        ]
        for uuid in left[:most]:
            self._nova.delete(uuid)
            asked.add(uuid)
        if len(left) > most:
            return most, False
        del self._deleted[request.uuid]
        alive = [u for u in request.servers if not self._nova.is_gone(u)]
        still = self._nova.left_of(request.project, alive)
        if still:
            raise exception.CloudAway(f'server {min(still)} is still there')
        return len(left), True

    def _send_once_more(self, cast_uuid: str) -> None:
        cast = self._store.cast(cast_uuid)
        if cast:
            self._sender.connect()
            self._sender.send(parser.nowhere(cast))

    def send_unplanned(
        self,
        record: records.RequestRecord,
        why: reason.Why,
        epoch: int,
        *,
        is_gone: bool = False,
    ) -> None:
        """Send a request that waits without looking for room.

        :param is_gone: whether its servers were deleted: Nova then cleans up.
        """
        self._sender.connect()
        now = self._clock()
        kept = self._store.step(record.request, _E.RESERVE, epoch, why, now)
        changed = parser.nowhere if is_gone else _as_it_is
        because = why if is_gone else _SENT
        self._send(kept, record.cast_uuid, (), epoch, changed, because)

    def forget_room(self, request: request_model.Request) -> None:
        """Free room that a process left behind which died or was late."""
        if self._placement.keeps(request):
            self._placement.free(request)

    def take_back(self, record: records.RequestRecord, epoch: int) -> bool:
        """Let a request wait again that Nova does not have.

        To be asked long after it was sent: what Nova took from the broker a
        moment ago shows nowhere yet.

        :returns: whether it waits again; ``False`` if Nova may have it.
        """
        request = record.request
        if not self._sender.is_drained() or (
            request.demand.amounts
            and any(self._placement.claimed(u) for u in request.servers)
        ):
            return False
        self.return_unsent(record, epoch)
        return True

    def return_unsent(self, record: records.RequestRecord, epoch: int) -> None:
        """Let a request wait again that Nova is known not to have."""
        why = reason.why(_R.ROOM_LOST)
        now = self._clock()
        back = self._store.step(record.request, _E.RETURN, epoch, why, now)
        LOG.warning(
            'request %s: Nova does not have it: it waits again: server %s',
            back.uuid,
            self._named(back),
        )
        self.put_back(dataclasses.replace(record, request=back), epoch)

    def put_back(self, record: records.RequestRecord, epoch: int) -> None:
        """Let a request wait again that was reserved and not sent."""
        self._placement.free(record.request)
        why = reason.why(_R.ROOM_LOST)
        now = self._clock()
        self._store.step(record.request, _E.LOSE, epoch, why, now)

    def _kept(
        self,
        request: request_model.Request,
        trees: Iterable[placement_module.ProviderTree],
        why: reason.Why,
        epoch: int,
    ) -> request_model.Request | None:
        """Keep room; ``None`` if there is none any more."""
        now = self._clock()
        # First the row: room without a row would be kept for ever.
        kept = self._store.step(request, _E.RESERVE, epoch, why, now)
        try:
            self._placement.keep(kept, trees)
        except exception.CloudRefused as error:
            LOG.info(
                'request %s lost its room: server %s: %s',
                request.uuid,
                self._named(request),
                error,
            )
            lost = reason.why(_R.ROOM_LOST)
            self._store.step(kept, _E.LOSE, epoch, lost, self._clock())
            return None
        return kept

    def _send(
        self,
        kept: request_model.Request,
        cast_uuid: str,
        hosts: tuple[str, ...],
        epoch: int,
        changed: Callable[[cast_module.Cast], cast_module.Cast],
        why: reason.Why,
    ) -> None:
        cast = self._store.cast(cast_uuid)
        is_build = kept.origin is request_model.Origin.BUILD
        if cast is None:
            self._give_up(kept, _E.FAIL, _R.START_FAILED, epoch)
            if is_build:
                self._delete(kept)
            return
        # Nova gives back what it cannot unshelve, and deletes nothing.
        if is_build and not self._tokens.is_taken(parser.token(cast)):
            self._give_up(kept, _E.EXPIRE, _R.TOKEN_REFUSED, epoch)
            return
        # Conductor would throw away a build that Nova has decided on already,
        # as after an old backup of the database was restored.
        started = any(
            each.is_settled if is_build else each.host
            for each in self.present(kept)
        )
        # What cannot be written anew must not look as if it was sent.
        written = changed(cast)
        try:
            sending = self._store.step(
                kept, _E.SEND, epoch, why, self._clock(), hosts
            )
        except (exception.Outdated, exception.Deposed):
            # Whoever changed it may have freed it before it was kept.
            self._placement.free(kept)
            raise
        try:
            self._placement.free(kept)
            if started:
                LOG.error(_RUNS_ALREADY, kept.uuid, self._named(kept))
            else:
                self._sender.send(written)
        except (exception.CloudError, exception.NoListener):
            # The next cycle lets it wait again.
            self._store.step(sending, _E.RETURN, epoch, why, self._clock())
            raise
        self._store.step(sending, _E.SENT, epoch, why, self._clock())
        self._tell_sent(kept, hosts, why)

    def _tell_sent(
        self,
        kept: request_model.Request,
        hosts: tuple[str, ...],
        why: reason.Why,
    ) -> None:
        named = self._named(kept)
        if why.reason is _R.SERVER_DELETED:
            LOG.info(_CLEANS_UP, kept.uuid, named)
            return
        to = plans.listed(sorted(set(hosts))) or 'any host'
        LOG.info('request %s was sent to %s: server %s', kept.uuid, to, named)

    def _give_up(
        self,
        kept: request_model.Request,
        event: request_model.Event,
        token: reason.Reason,
        epoch: int,
    ) -> None:
        self._placement.free(kept)
        why = reason.why(token)
        self._store.step(kept, event, epoch, why, self._clock())
        LOG.warning(
            'request %s is given up: server %s: %s',
            kept.uuid,
            self._named(kept),
            why.sentence,
        )

    def _named(self, request: request_model.Request) -> str:
        """Its servers, for the log."""
        return plans.listed([*map(self._nova.named, request.servers)])

    def present(
        self, request: request_model.Request
    ) -> list[nova_module.Server]:
        """Its servers as Nova shows them now.

        Many are looked up in one list: asked for one by one they would take
        longer than a leader may be silent.
        """
        if len(request.servers) <= _ONE_BY_ONE:
            looked = [self._nova.server(uuid) for uuid in request.servers]
        else:
            with clients.reading("Nova's list of servers"):
                listed = self._nova.servers(self._clock())
            looked = [listed.get(uuid) for uuid in request.servers]
        return [each for each in looked if each is not None]


def _kept(
    planned: cluster.Plan,
    found: Iterable[records.RequestRecord],
    view: snapshot_module.CloudView,
) -> set[str]:
    """Names of hosts with room that belongs to a request.

    The room is reserved, or a request is sent there now, or was sent and Nova
    has not claimed it yet.
    """
    hosts = {host for each in planned.actions for host in each.hosts}
    for waiting in planned.waiting.values():
        if waiting.reserved is not None:
            hosts.update(waiting.reserved.hosts)
    for record in found:
        if record.request.state in (_S.SENDING, _S.STARTING):
            pairs = zip(record.request.servers, record.hosts, strict=False)
            hosts.update(
                host
                for uuid, host in pairs
                if uuid in view.servers and not view.servers[uuid].host
            )
    return hosts


def _as_it_is(cast: cast_module.Cast) -> cast_module.Cast:
    return cast


def judged(
    record: records.RequestRecord, found: list[nova_module.Server]
) -> tuple[request_model.Event, reason.Why] | None:
    """Event and reason of a request that was sent; ``None`` for nothing new.

    :param found: those of its servers that are there.
    """
    request, statuses = record.request, {each.status for each in found}
    if request.state is _S.SENDING:
        seen = any(each.is_settled for each in found)
        return (_E.SENT, reason.why(_R.SENT)) if seen else None
    if not found:
        return _E.END, reason.why(_R.SERVER_DELETED)
    if request.state is not _S.STARTING:
        return None
    if any(each.status == 'ERROR' and not each.host for each in found):
        return _E.FAIL, reason.why(_R.NO_VALID_HOST)
    rests = any(
        each.status == 'SHELVED_OFFLOADED' and not each.task for each in found
    )
    if 'ERROR' in statuses or rests:
        return _E.FAIL, reason.why(_R.START_FAILED)
    if statuses & {'BUILD', 'SHELVED_OFFLOADED', 'SHELVED'}:
        return None
    return _E.START, reason.why(_R.STARTED)
