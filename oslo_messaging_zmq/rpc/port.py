# SPDX-License-Identifier: Apache-2.0

"""One bound socket of a listener: what comes in is checked here."""

from collections.abc import Callable
from collections.abc import Collection
from typing import Any

import zmq

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import options
from oslo_messaging_zmq import threads
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import guard as security
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.rpc import incoming
from oslo_messaging_zmq.rpc import limiter
from oslo_messaging_zmq.rpc import routes

_BACKLOG = 1024
_HANDSHAKE_MS = 10000
# Plain numbers: those of ZeroMQ's flags cost more than a message.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.SNDMORE) | _NOBLOCK
_EVENTS = int(zmq.EVENTS)
_READABLE = int(zmq.POLLIN)

_DROP_S = 0.001
"""How long a message that was one too many keeps the next from being read.

A flood then waits where it comes from: reading it to drop it would cost most
of a CPU. ZeroMQ takes from one connection after the other, so the messages of
everybody else wait no longer than this for each peer that floods.
"""

Address = tuple[str, str, str]


class Port:
    """Reads and checks messages, and sends answers. One thread's.

    :param context: of this process.
    :param guard: knows who may send.
    :param settings: of the driver.
    :param kinds: kinds of messages that may come here.
    :param address: exchange, topic and server whose messages may come.
    :param wake: called when messages were served and more may be read.
    """

    def __init__(
        self,
        context: contexts.Context,
        guard: security.Guard,
        settings: options.Settings,
        kinds: Collection[int],
        address: Address,
        wake: Callable[[], None],
    ) -> None:
        self._guard = guard
        self._limit = settings.max_message_size
        self._kinds = kinds
        self._address = address
        self._refused = refusals.Refusals('/'.join(address))
        self.received = 0
        # Whether there may be more to read than the descriptor tells: ZeroMQ
        # makes it readable once, not as long as messages are there.
        self.may_have_more = True
        is_fanout = wire.FANOUT in kinds
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
            limit, rate = settings.fanouts_in_work, settings.fanout_rate
        self.credit = incoming.Credit(limit, wake)
        self._limiter = limiter.Limiter(rate)

    def read(self, answering: incoming.Answering) -> incoming.Incoming | None:
        """Read the next message that is there, if it is a good one.

        Afterwards ``may_have_more`` says whether to come back.

        :param answering: sends its answers.
        """
        try:
            sender: Any = self.socket.recv(_NOBLOCK)
        except zmq.Again:
            self.may_have_more = False
            return None
        return self.take(sender, answering)

    def wait(self) -> bytes | None:
        """Wait for a message, as long as the socket's RCVTIMEO says.

        :returns: name of its connection; take() gives the message. None if
            none came.
        """
        return self._sender(0)

    def next(self) -> bytes | None:
        """Give the same of a message that is there; None if none is."""
        return self._sender(_NOBLOCK)

    def take(
        self, sender: bytes, answering: incoming.Answering
    ) -> incoming.Incoming | None:
        """Read the message whose connection was read.

        :param answering: sends its answers.
        :returns: None if it is none that may come here.
        """
        frame: Any = self.socket.recv(0, False)
        if frame.more:
            self._drop_rest(frame)
            return None
        request = self._request(sender, frame)
        if request is None:
            return None
        self.received += 1
        return incoming.Incoming(request, sender, self.credit, answering)

    def dropped(self) -> dict[str, int]:
        """Count what did not pass, by reason."""
        return {
            f'received_dropped_{name}': n
            for name, n in self._refused.counts.items()
        }

    def look(self) -> None:
        """Find out whether there is more to read.

        Costs half of reading in vain, but more than reading.
        """
        self.may_have_more = bool(
            int(self.socket.getsockopt(_EVENTS)) & _READABLE
        )

    def send(self, receiver: bytes, payload: bytes) -> None:
        """Send an answer; it is dropped and counted if that is impossible."""
        self.may_have_more = True
        try:
            self.socket.send(receiver, _MORE)
            self.socket.send(payload, _NOBLOCK)
        except zmq.ZMQError as error:
            self._refused.note('answer', self.endpoint, str(error))

    def _sender(self, flags: int) -> bytes | None:
        try:
            sender: Any = self.socket.recv(flags)
        except zmq.Again:
            return None
        return bytes(sender)

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

    def _request(self, sender: bytes, frame: zmq.Frame) -> wire.Request | None:
        peer = self._guard.peer(frame)
        if peer is None:
            self._refuse('unauthorised', frame, 'its key is not allowed')
            return None
        payload = frame.bytes
        # Without keys there is nothing better than the connection.
        if not self._limiter.admits(peer['name'] or sender, len(payload)):
            self._refuse('flood', frame, 'it sends too many messages', peer)
            threads.original('time').sleep(_DROP_S)
            return None
        try:
            request = wire.decode_request(payload, self._limit)
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
        return request

    def _is_addressed(self, request: wire.Request) -> bool:
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

    def _drop_rest(self, frame: Any) -> None:
        self._refuse('malformed', frame, 'more than one frame')
        while frame.more:
            frame = self.socket.recv(0, False)


def _origin(frame: zmq.Frame) -> str:
    try:
        return str(frame.get('Peer-Address'))
    except zmq.ZMQError:
        return 'unknown address'


def _bracketed(host: str) -> str:
    return f'[{host}]' if ':' in host else host
