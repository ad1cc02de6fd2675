# SPDX-License-Identifier: Apache-2.0

"""One bound socket of a listener, which validates incoming messages.

A port limits the messages of each peer (:class:`Limiter`).
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
import time
from typing import Any
from typing import Protocol

import oslo_messaging
from oslo_messaging._drivers import base
from oslo_messaging._drivers import common
import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.rpc import routes
from oslo_messaging_zmq.rpc import turns

_BACKLOG = 1024
_HANDSHAKE_MS = 10000
# Plain numbers: those of ZeroMQ's flags cost more than a message.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.SNDMORE) | _NOBLOCK
_EVENTS = int(zmq.EVENTS)
_READABLE = int(zmq.POLLIN)

_DROP_S = 0.001
"""Pause after a message beyond the limit, in seconds. A flood then waits
at its sender: reading it only to drop it would use most of a CPU. ZeroMQ
reads the connections in turn, so messages of other peers wait no longer
than this for each flooding peer."""

BURST_S = 10.0
"""Seconds of the allowed rate that may arrive at once."""

FANOUT_PART = 1 / 20
"""Part of ``request_rate`` that is allowed for fanouts of one peer,
because a fanout reaches all peers."""

_MOST_PEERS = 10_000
_SIZE = 64 * 1024
"""Bytes of a message that count as one more message."""

_TRACKED = 16 * 1024
"""Smallest answer whose sending is tracked, in bytes, because tracking
costs more than a small answer."""


class Answering(Protocol):
    """Function that sends an answer to a connection."""

    def __call__(
        self,
        receiver: bytes,
        answer: messages.Answer,
        left: Callable[[], None] = ...,
    ) -> None:
        """Send it; ``left`` is called when it was sent, or never can be."""


class IncomingMessage(base.RpcIncomingMessage):  # type: ignore[misc]
    """A received call, cast or fanout message.

    :param request: the content.
    :param sender: name of its connection.
    :param peer: name of the sender, or of its connection.
    :param size: of the message in bytes.
    :param answer: sends an answer to a connection.
    """

    _credit: turns.Credit | None = None
    _part: turns.Credit | None = None

    def __init__(
        self,
        request: messages.RequestMessage,
        sender: bytes,
        peer: str | bytes,
        size: int,
        answer: Answering,
    ) -> None:
        # Not the parent's, which would make up an id for every cast.
        self.ctxt: Any = request.ctxt
        self.message: Any = request.message
        self.msg_id = request.msg_id
        self.client_timeout = request.client_timeout
        self._is_call = request.kind == messages.CALL
        self._sender = sender
        self.peer = peer
        self.size = size
        self._answer = answer

    def begin(
        self, credit: turns.Credit, part: turns.Credit | None = None
    ) -> None:
        """Count the message as in progress.

        :param credit: counts it until it is processed.
        :param part: counts it until its answer is sent.
        """
        self._credit, self._part = credit, part
        credit.take()
        if part is not None:
            part.take()

    def __del__(self) -> None:
        self._release_credit()
        self._release_part()

    def acknowledge(self) -> None:
        """Do nothing: no other listener would get the message."""

    def requeue(self) -> None:
        """Do nothing: only notifications can be requeued."""

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Answer a call; for other messages only count them as processed.

        :param reply: result of the endpoint.
        :param failure: its exception, as ``sys.exc_info()``.
        """
        is_due = self._is_call and self._credit is not None
        self._release_credit()
        if is_due:
            text = (
                common.serialize_remote_exception(failure) if failure else None
            )
            self._answer(
                self._sender,
                messages.Answer(messages.REPLY, self.msg_id, reply, text),
                self._release_part,
            )
        else:
            self._release_part()

    def heartbeat(self) -> None:
        """Notify the caller that the call is still in progress.

        :raises MessageDeliveryFailure: if it is not; then heartbeats must end.
        """
        if self._credit is None or not self._is_call:
            msg = f'call {self.msg_id} is not in work'
            raise oslo_messaging.MessageDeliveryFailure(msg)
        self._answer(
            self._sender, messages.Answer(messages.HEARTBEAT, self.msg_id)
        )

    def refuse(self) -> None:
        """Send a call back unprocessed, for another listener."""
        self._release_credit()
        if self._is_call:
            self._answer(
                self._sender, messages.Answer(messages.REFUSED, self.msg_id)
            )
        self._release_part()

    def _release_credit(self) -> None:
        credit, self._credit = self._credit, None
        if credit is not None:
            credit.served()

    def _release_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.served()


class Limiter:
    """Limits the rate of each peer's messages, before they are decoded.

    It uses a token bucket per peer, and must be used by one thread.

    :param rate: mean messages per second; 0 means no limit.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_S)
        self._clock = clock
        # What is left, and when: by peer, the one heard longest ago first.
        self._buckets: collections.OrderedDict[
            str | bytes, tuple[float, float]
        ] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def admits(self, peer: str | bytes, size: int) -> bool:
        """Check whether one more message is allowed, and count it.

        A message larger than the burst is allowed after a burst's time of
        silence.

        :param peer: its name, or that of its connection.
        :param size: of the message, bytes.
        """
        rate = self._rate
        if not rate:
            return True
        now_s = self._clock()
        most = self._most
        bucket = self._buckets.get(peer)
        left = most
        if bucket is not None:
            left = min(most, bucket[0] + (now_s - bucket[1]) * rate)
        else:
            self._delete_oldest_bucket()
        cost = min(most, 1.0 + size // _SIZE)
        is_admitted = left >= cost
        self._buckets[peer] = left - cost * is_admitted, now_s
        self._buckets.move_to_end(peer)
        return is_admitted

    def _delete_oldest_bucket(self) -> None:
        """Delete the bucket of the peer with the longest silence, which
        is full by now.
        """
        if len(self._buckets) >= _MOST_PEERS:
            self._buckets.popitem(last=False)


def _admit_every_message(name: str | bytes, size: int) -> bool:
    """Admit every message."""
    del name, size
    return True


class Port:
    """Reads and validates messages, and sends answers, on one thread.

    :param context: of this process.
    :param guard: decides who may send.
    :param settings: of the driver.
    :param kinds: allowed kinds of messages.
    :param address: exchange, topic and server of allowed messages.
    :param answer: sends the answers.
    :param wake: called when messages were processed and more may be read.
    :param has_room: checks whether a peer's message of a size may wait.
    """

    def __init__(
        self,
        context: security.Context,
        guard: security.SocketGuard,
        settings: options.DriverSettings,
        kinds: Collection[int],
        address: messages.Address,
        answer: Answering,
        wake: Callable[[], None],
        has_room: Callable[[str | bytes, int], bool] = _admit_every_message,
    ) -> None:
        self._guard = guard
        self._answer = answer
        self._has_room = has_room
        self._leaving: list[tuple[zmq.MessageTracker, Callable[[], None]]] = []
        self._limit = settings.max_message_size
        self._kinds = kinds
        self._address = address
        self._refused = refusals.Refusals('/'.join(address))
        self.received = 0
        # Whether there may be more to read than the descriptor tells: ZeroMQ
        # makes it readable once, not as long as messages are there.
        self.may_have_more = True
        is_fanout = messages.FANOUT in kinds
        self.socket = routes.sender(
            context,
            settings.fanout_queue_length
            if is_fanout
            else settings.queue_length,
        )
        self.endpoint = self._bind(settings.bind_address, settings.host)
        self.descriptor = self.socket.fileno()
        limit, rate = settings.requests_in_work, settings.request_rate
        if is_fanout:
            limit, rate = settings.fanouts_in_work, rate * FANOUT_PART
        self.credit = turns.Credit(limit, wake)
        self._limiter = Limiter(rate)

    def read(self) -> IncomingMessage | None:
        """Read the next available message, if it is valid.

        Afterwards ``may_have_more`` is whether to call it again.
        """
        sender = self.next()
        if sender is None:
            self.may_have_more = False
            return None
        return self.take(sender)

    def wait(self) -> bytes | None:
        """Wait for a message, at most the socket's RCVTIMEO.

        :returns: name of its connection, for :meth:`take`; ``None`` if none
            arrived.
        """
        return self._read_sender(0)

    def next(self) -> bytes | None:
        """Return the connection of an available message; ``None`` without
        one.
        """
        return self._read_sender(_NOBLOCK)

    def take(self, sender: bytes) -> IncomingMessage | None:
        """Read the message whose connection was returned.

        :returns: ``None`` if it is invalid here.
        """
        frame: Any = self.socket.recv(0, False)
        self._guard.took(frame)
        return self._check_message(
            sender, frame, self._read_further_frames(frame)
        )

    def dropped(self) -> dict[str, int]:
        """Return the number of dropped messages, by cause."""
        return self._refused.counted('received_dropped')

    def look(self) -> None:
        """Check whether there are more messages to read.

        It costs half of a vain reading, but more than a successful one.
        """
        self.may_have_more = bool(
            int(self.socket.getsockopt(_EVENTS)) & _READABLE
        )

    def send(
        self, receiver: bytes, payload: bytes, left: Callable[[], None]
    ) -> None:
        """Send an answer; drop and count it if that is impossible.

        :param left: called when it was sent; for a large one by
            :meth:`follow`.
        """
        self.may_have_more = True
        is_tracked = len(payload) >= _TRACKED
        try:
            self.socket.send(receiver, _MORE)
            if is_tracked:
                frame = zmq.Frame(
                    payload, track=True, copy=False, copy_threshold=0
                )
                self.socket.send(frame, _NOBLOCK, False)
                self._leaving.append((frame.tracker, left))
                return
            self.socket.send(payload, _NOBLOCK)
        except zmq.ZMQError as error:
            self._refused.note('answer', self.endpoint, str(error))
        left()

    def follow(self) -> bool:
        """Check which large answers were sent.

        :returns: whether some still wait for their reader.
        """
        if not self._leaving:
            return False
        gone = [left for tracker, left in self._leaving if tracker.done]
        self._leaving = [each for each in self._leaving if not each[0].done]
        for left in gone:
            left()
        return bool(self._leaving)

    def _read_sender(self, flags: int) -> bytes | None:
        try:
            sender: Any = self.socket.recv(flags)
        except zmq.Again:
            return None
        return sender  # type: ignore[no-any-return]

    def _bind(self, bind_address: str, host: str) -> str:
        socket = self.socket
        socket.setsockopt(zmq.BACKLOG, _BACKLOG)
        socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
        # Larger ones end the connection before they are in memory. Those a
        # little too large come in, so that their sender can be named.
        socket.setsockopt(zmq.MAXMSGSIZE, 2 * self._limit)
        socket.setsockopt(zmq.IPV6, int(':' in bind_address))
        self._guard.as_server(socket)
        socket.bind(f'tcp://{_bracketed(bind_address)}:*')
        bound = socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(bound, bytes)  # noqa: S101 - for mypy
        port = bound.rstrip(b'\0').rpartition(b':')[2].decode('ascii')
        return f'tcp://{_bracketed(host)}:{port}'

    def _read_further_frames(self, frame: Any) -> int:
        """Read further frames of a message; return their size in bytes."""
        size = 0
        while frame.more:
            frame = self.socket.recv(0, False)
            self._guard.took(frame)
            size += 1 + len(frame)
        return size

    def _check_message(
        self, sender: bytes, frame: zmq.Frame, rest: int
    ) -> IncomingMessage | None:
        peer = self._guard.peer(frame)
        if peer is None:
            self._refuse('unauthorised', frame, 'its key is not allowed')
            return None
        payload = frame.bytes
        size = len(payload) + rest
        # Without keys there is nothing better than the connection.
        name = peer['name'] or sender
        if not (
            self._limiter.admits(name, size) and self._has_room(name, size)
        ):
            self._refuse('flood', frame, 'it sends too many messages', peer)
            if peer['name']:
                self._guard.keep_out(peer['name'])
            time.sleep(_DROP_S)
            return None
        if rest:
            self._refuse('malformed', frame, 'more than one frame', peer)
            return None
        try:
            request = messages.decode_request(payload, self._limit)
        except errors.BadMessage as error:
            self._refuse('malformed', frame, str(error), peer)
            return None
        if request.kind not in self._kinds:
            self._refuse('malformed', frame, 'of the other socket', peer)
            return None
        if not self._is_addressed(request):
            why = f'it is for {request.exchange}/{request.topic}'
            self._refuse('misaddressed', frame, why[:200], peer)
            return None
        request.ctxt['zmq_peer'] = peer
        self.received += 1
        return IncomingMessage(request, sender, name, size, self._answer)

    def _is_addressed(self, request: messages.RequestMessage) -> bool:
        exchange, topic, server = self._address
        return (
            request.topic == topic
            and request.exchange == exchange
            and request.server in {'', server}
        )

    def _refuse(
        self,
        kind: str,
        frame: zmq.Frame,
        why: str,
        peer: security.Identity | None = None,
    ) -> None:
        name = peer and peer['name']
        who = f'{name} ({_origin(frame)})' if name else _origin(frame)
        self._refused.note(kind, who, why)


def encode_or_failure(answer: messages.Answer, limit: int) -> bytes:
    """Encode an answer; replace one that cannot be sent by a failure.

    :param limit: largest size of a message in bytes.
    """
    try:
        return messages.encode_answer(answer, limit)
    except errors.UnsendableMessage as error:
        failure = oslo_messaging.MessageDeliveryFailure(str(error))
        text = common.serialize_remote_exception(
            (type(failure), failure, None)
        )
        return messages.encode_answer(
            messages.Answer(answer.kind, answer.msg_id, None, text), limit
        )


def _origin(frame: zmq.Frame) -> str:
    try:
        return str(frame.get('Peer-Address'))
    except zmq.ZMQError:
        return 'unknown address'


def _bracketed(host: str) -> str:
    return f'[{host}]' if ':' in host else host
