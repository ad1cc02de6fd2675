# SPDX-License-Identifier: Apache-2.0

"""Sends calls and casts, and reads the answers, on one thread."""

from collections.abc import Mapping
import functools
import queue
import threading
from typing import Any

import zmq
from zmq.utils import monitor

from oslo_messaging_zmq import errors
from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq import tasks
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import routes

_EVENTS = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_CONNECT_RETRIED
    | zmq.EVENT_DISCONNECTED
)
_BATCH = 100
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.SNDMORE) | _NOBLOCK
_SETTLE_S = 1.0

UNSENT = 0
"""Kind of an answer that the caller creates itself: nothing was sent."""

SENT = -1
"""Kind of an answer that the caller creates itself: ZeroMQ accepted a cast."""

_Settling = tuple[tuple[routes.PeerRoute, ...], threading.Event]


class Pending:
    """One attempt to send a call or a cast.

    :param peer: receiver.
    :param msg_id: identifier that the answer repeats.
    :param payload: the message.
    :param is_call: whether an answer is expected.
    """

    __slots__ = (
        '_answers',
        '_ups',
        'is_call',
        'msg_id',
        'payload',
        'peer',
        'route',
    )

    def __init__(
        self,
        peer: contract.AnnouncedListener,
        msg_id: str,
        payload: bytes,
        *,
        is_call: bool,
    ) -> None:
        self.peer = peer
        self.msg_id = msg_id
        self.payload = payload
        self.is_call = is_call
        self.route: routes.PeerRoute | None = None
        self._ups = -1
        self._answers: queue.SimpleQueue[messages.Answer] = queue.SimpleQueue()

    def queued(self, route: routes.PeerRoute) -> None:
        """Record the connection that accepted the message."""
        self.route = route
        self._ups = -1 if route.up else route.ups

    def was_never_sent(self) -> bool:
        """Check whether the connection has not been up since it accepted
        the message.
        """
        return self.route is not None and self._ups == self.route.ups

    def tell(self, answer: messages.Answer) -> None:
        """Pass an answer to the waiting thread."""
        self._answers.put(answer)

    def wait(self, timeout_s: float) -> messages.Answer | None:
        """Wait for the next answer.

        :param timeout_s: longest wait in seconds.
        :returns: ``None`` if there was none in time.
        """
        try:
            return self._answers.get(timeout=max(timeout_s, 0.0))
        except queue.Empty:
            return None


class RpcCaller:
    """Sends to single listeners; there is one per driver and process.

    :param context: of this process.
    :param guard: prepares connections.
    :param settings: of the driver.
    :param name: of the driver in the log.
    :ivar is_closed: whether it is closed, so that nothing is sent any more.
    """

    def __init__(
        self,
        context: security.Context,
        guard: security.SocketGuard,
        settings: options.DriverSettings,
        name: str,
    ) -> None:
        self._limit = settings.max_message_size
        self._guard = guard
        self._refused = refusals.Refusals(name)
        self._socket = routes.sender(context, settings.queue_length)
        self._socket.setsockopt(zmq.MAXMSGSIZE, 2 * self._limit)
        self._monitor = self._socket.get_monitor_socket(_EVENTS)
        self._routes = routes.Routes(
            self._socket, guard, self._refused, is_fanout=False
        )
        self._pending: dict[str, Pending] = {}
        self._settling: list[_Settling] = []
        self._sent = self._answers = 0
        self._closing = self.is_closed = False
        self._tasks = tasks.TaskQueue()
        self._watched: list[tuple[Any, int]] = [
            (self._socket, zmq.POLLIN),
            (self._monitor, zmq.POLLIN),
            (self._tasks.descriptor, zmq.POLLIN),
        ]
        self._thread = threading.Thread(
            target=self._run, name=f'zmq-calls-{name}', daemon=True
        )
        self._thread.start()

    def send(self, message: Pending) -> None:
        """Send a call or a cast; ``message.wait()`` returns the result."""
        self._tasks.put(functools.partial(self._send, message))
        if self.is_closed:
            message.tell(messages.Answer(UNSENT, message.msg_id))

    def give_up(self, message: Pending) -> None:
        """Stop waiting for answers to a call."""
        self._tasks.put(functools.partial(self._forget, message))

    def is_up(self, peer: contract.AnnouncedListener) -> bool | None:
        """Return whether a listener is connected; ``None`` if unknown."""
        route = self._routes.find(peer)
        return None if route is None else route.up

    def settle(self, peers: contract.Peers) -> None:
        """Connect to listeners, and wait (bounded) until each is up or
        down.
        """
        done = threading.Event()
        self._tasks.put(functools.partial(self._connect, peers, done))
        if not done.wait(_SETTLE_S):
            self._tasks.put(functools.partial(self._mark_down, done))
            done.wait(_SETTLE_S)

    def keep(self, exchange: str, topic: str, peers: contract.Peers) -> None:
        """Disconnect from all other listeners of a topic."""
        self._tasks.put(
            lambda: self._disconnected(
                self._routes.keep(exchange, topic, peers)
            )
        )

    def withdraw(self, key: str) -> None:
        """Disconnect from all peers with a key."""
        self._tasks.put(lambda: self._disconnected(self._routes.withdraw(key)))

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name."""
        return {
            'calls_and_casts_sent': self._sent,
            'answers_received': self._answers,
            'calls_pending': len(self._pending),
            'peers_connected': len(self._routes),
        } | self._refused.counted('dropped')

    def close(self) -> None:
        """End the thread and the connections; waiting calls get no answer."""
        self._tasks.put(functools.partial(setattr, self, '_closing', True))
        self._thread.join()

    def _run(self) -> None:
        tasks.repeat(
            self._process_events, lambda: self._closing, self._thread.name
        )
        self._close_all()

    def _process_events(self) -> None:
        limit = -1 if self._tasks.may_sleep() else 0
        ready = dict(zmq.zmq_poll(self._watched, limit))
        if self._tasks.descriptor in ready:
            self._tasks.heard()
        self._tasks.work()
        if self._monitor in ready:
            self._read_events()
        if self._socket in ready:
            self._read_answers()

    def _close_all(self) -> None:
        # In this order: what is put later answers itself.
        self.is_closed = True
        self._tasks.work()
        for message in self._pending.values():
            message.tell(messages.Answer(UNSENT, message.msg_id))
        for _, done in self._settling:
            done.set()
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._tasks.close()

    def _send(self, message: Pending) -> None:
        route = None if self.is_closed else self._routes.to(message.peer)
        if route is None or not self._was_sent(route, message.payload):
            message.tell(messages.Answer(UNSENT, message.msg_id))
            return
        self._sent += 1
        message.queued(route)
        if message.is_call:
            self._pending[message.msg_id] = message
        else:
            message.tell(messages.Answer(SENT, message.msg_id))

    def _was_sent(self, route: routes.PeerRoute, payload: bytes) -> bool:
        try:
            self._socket.send(route.id, _MORE)
            self._socket.send(payload, _NOBLOCK)
        except zmq.Again:
            self._refused.note(
                'queue_full', route.endpoint, 'too many messages wait for it'
            )
            return False
        except zmq.ZMQError as error:
            self._refused.note('unreachable', route.endpoint, str(error))
            return False
        return True

    def _forget(self, message: Pending) -> None:
        self._pending.pop(message.msg_id, None)

    def _connect(self, peers: contract.Peers, done: threading.Event) -> None:
        found = tuple(filter(None, map(self._routes.to, peers)))
        self._settling.append((found, done))
        self._finish_settling()

    def _mark_down(self, done: threading.Event) -> None:
        for found, other in self._settling:
            if other is done:
                for route in found:
                    route.up = bool(route.up)
        self._finish_settling()

    def _finish_settling(self) -> None:
        waiting = []
        for found, done in self._settling:
            if any(route.up is None for route in found):
                waiting.append((found, done))
            else:
                done.set()
        self._settling = waiting

    def _disconnected(self, gone: list[routes.PeerRoute]) -> None:
        for route in gone:
            route.up = False
        for message in [
            each
            for each in self._pending.values()
            if each.route in gone and each.was_never_sent()
        ]:
            del self._pending[message.msg_id]
            message.tell(messages.Answer(UNSENT, message.msg_id))
        self._finish_settling()

    def _read_events(self) -> None:
        while self._monitor.poll(0):
            event = monitor.recv_monitor_message(self._monitor, zmq.NOBLOCK)
            endpoint = event['endpoint'].decode()
            if event['event'] == zmq.EVENT_CONNECTED:
                self._guard.connected(event['value'], endpoint)
                continue
            is_up = event['event'] == zmq.EVENT_HANDSHAKE_SUCCEEDED
            for route in self._routes.at(endpoint):
                route.up = is_up
                route.ups += is_up
        self._finish_settling()

    def _read_answers(self) -> None:
        for _ in range(_BATCH):
            try:
                sender, *frames = self._socket.recv_multipart(
                    zmq.NOBLOCK, copy=False
                )
            except zmq.Again:
                return
            for frame in frames:
                self._guard.took(frame)
            name = sender.bytes
            try:
                answer = messages.decode_answer(frames[0].bytes, self._limit)
            except errors.BadMessage as error:
                self._refused.note('malformed', name.decode(), str(error))
                continue
            self._accept_answer(name, answer)

    def _accept_answer(self, sender: bytes, answer: messages.Answer) -> None:
        message = self._pending.get(answer.msg_id)
        if message is None or message.route is None:
            self._refused.counts['late_answer'] += 1
            return
        if message.route.id != sender:
            self._refused.note(
                'foreign_answer',
                sender.decode(),
                'it answers a call to another peer',
            )
            return
        self._answers += 1
        if answer.kind != messages.HEARTBEAT:
            del self._pending[answer.msg_id]
        message.tell(answer)
