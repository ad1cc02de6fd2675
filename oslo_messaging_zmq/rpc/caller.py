# SPDX-License-Identifier: Apache-2.0

"""Calls and casts: a native thread sends them and reads the answers."""

from collections.abc import Mapping
import functools
from typing import Any

import zmq
from zmq.utils import monitor

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import options
from oslo_messaging_zmq import orders
from oslo_messaging_zmq import threads
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import guard as security
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.rpc import pending
from oslo_messaging_zmq.rpc import routes

LOG = native_log.Log(__name__)

_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
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
_PAUSE_S = 0.1

_Settling = tuple[tuple[routes.Route, ...], threads.Waiter]


class Caller:
    """Sends to single listeners; there is one per driver and process.

    :param context: of this process.
    :param guard: prepares connections.
    :param settings: of the driver.
    :param name: of the driver in the log.
    :ivar is_closed: nothing is sent any more.
    """

    def __init__(
        self,
        context: contexts.Context,
        guard: security.Guard,
        settings: options.Settings,
        name: str,
    ) -> None:
        self._limit = settings.max_message_size
        self._refused = refusals.Refusals(name)
        self._socket = routes.sender(context, settings.queue_length)
        self._socket.setsockopt(zmq.MAXMSGSIZE, 2 * self._limit)
        self._monitor = self._socket.get_monitor_socket(_EVENTS)
        self._routes = routes.Routes(
            self._socket, guard, self._refused, is_fanout=False
        )
        self._pending: dict[str, pending.Pending] = {}
        self._settling: list[_Settling] = []
        self._sent = self._answers = 0
        self._closing = self.is_closed = False
        self._orders = orders.Orders()
        self._ended = threads.Waiter()
        threads.start(f'zmq-calls-{name}', self._run)

    def send(self, message: pending.Pending) -> None:
        """Send a call or a cast; its ``wait()`` says how that went."""
        self._orders.put(functools.partial(self._send, message))
        if self.is_closed:
            message.tell(wire.Answer(pending.UNSENT, message.msg_id))

    def give_up(self, message: pending.Pending) -> None:
        """Wait for no more answers to a call."""
        self._orders.put(functools.partial(self._forget, message))

    def is_up(self, peer: addressing.Peer) -> bool | None:
        """Whether a listener is connected, None if nobody knows."""
        route = self._routes.find(peer)
        return None if route is None else route.up

    def settle(self, peers: tuple[addressing.Peer, ...]) -> None:
        """Connect to listeners and wait, bounded, until each is up or down."""
        done = threads.Waiter()
        self._orders.put(functools.partial(self._connect, peers, done))
        if not done.wait(_SETTLE_S):
            self._orders.put(functools.partial(self._lose_patience, done))
            done.wait(_SETTLE_S)
        done.close()

    def keep(
        self, exchange: str, topic: str, peers: tuple[addressing.Peer, ...]
    ) -> None:
        """Forget everybody else who listened to a topic."""
        self._orders.put(
            lambda: self._left(self._routes.keep(exchange, topic, peers))
        )

    def withdraw(self, key: str) -> None:
        """Disconnect from everybody who has a key."""
        self._orders.put(lambda: self._left(self._routes.withdraw(key)))

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        counts = {
            'calls_and_casts_sent': self._sent,
            'answers_received': self._answers,
            'calls_pending': len(self._pending),
            'peers_connected': len(self._routes),
        }
        return counts | _dropped(self._refused)

    def close(self) -> None:
        """End the thread and the connections; calls get no answer."""
        self._orders.put(functools.partial(setattr, self, '_closing', True))
        self._ended.wait()
        self._ended.close()

    def _run(self) -> None:
        watched: list[tuple[Any, Any]] = [
            (self._socket, zmq.POLLIN),
            (self._monitor, zmq.POLLIN),
            (self._orders.descriptor, zmq.POLLIN),
        ]
        while not self._closing:
            try:
                self._turn(watched)
            except Exception as error:  # noqa: BLE001 - others wait for us
                LOG.error('The thread of calls goes on after: %r', error)
                threads.original('time').sleep(_PAUSE_S)
        self._end()

    def _turn(self, watched: list[tuple[Any, Any]]) -> None:
        limit = -1 if self._orders.may_sleep() else 0
        ready = dict(zmq.zmq_poll(watched, limit))
        if self._orders.descriptor in ready:
            self._orders.heard()
        self._orders.work()
        if self._monitor in ready:
            self._read_events()
        if self._socket in ready:
            self._read_answers()

    def _end(self) -> None:
        # In this order: what is ordered later answers itself.
        self.is_closed = True
        self._orders.work()
        for message in self._pending.values():
            message.tell(wire.Answer(pending.UNSENT, message.msg_id))
        for _, done in self._settling:
            done.set()
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._orders.close()
        self._ended.set()

    def _send(self, message: pending.Pending) -> None:
        route = None if self.is_closed else self._routes.to(message.peer)
        if route is None or not self._was_sent(route, message.payload):
            message.tell(wire.Answer(pending.UNSENT, message.msg_id))
            return
        self._sent += 1
        message.queued(route)
        if message.is_call:
            self._pending[message.msg_id] = message
        else:
            message.tell(wire.Answer(pending.SENT, message.msg_id))

    def _was_sent(self, route: routes.Route, payload: bytes) -> bool:
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

    def _forget(self, message: pending.Pending) -> None:
        self._pending.pop(message.msg_id, None)

    def _connect(
        self, peers: tuple[addressing.Peer, ...], done: threads.Waiter
    ) -> None:
        found = tuple(filter(None, map(self._routes.to, peers)))
        self._settling.append((found, done))
        self._tell_settled()

    def _lose_patience(self, done: threads.Waiter) -> None:
        for found, other in self._settling:
            if other is done:
                for route in found:
                    route.up = bool(route.up)
        self._tell_settled()

    def _tell_settled(self) -> None:
        waiting = []
        for found, done in self._settling:
            if any(route.up is None for route in found):
                waiting.append((found, done))
            else:
                done.set()
        self._settling = waiting

    def _left(self, gone: list[routes.Route]) -> None:
        for route in gone:
            route.up = False
        for message in [
            each
            for each in self._pending.values()
            if each.route in gone and each.was_never_sent()
        ]:
            del self._pending[message.msg_id]
            message.tell(wire.Answer(pending.UNSENT, message.msg_id))
        self._tell_settled()

    def _read_events(self) -> None:
        while self._monitor.poll(0):
            event = monitor.recv_monitor_message(self._monitor, zmq.NOBLOCK)
            is_up = event['event'] == zmq.EVENT_HANDSHAKE_SUCCEEDED
            for route in self._routes.at(event['endpoint'].decode()):
                route.up = is_up
                route.ups += is_up
        self._tell_settled()

    def _read_answers(self) -> None:
        for _ in range(_BATCH):
            try:
                sender, payload, *_more = self._socket.recv_multipart(
                    zmq.NOBLOCK
                )
            except zmq.Again:
                return
            try:
                answer = wire.decode_answer(payload, self._limit)
            except errors.BadMessage as error:
                self._refused.note('malformed', sender.decode(), str(error))
                continue
            self._take(sender, answer)

    def _take(self, sender: bytes, answer: wire.Answer) -> None:
        message = self._pending.get(answer.msg_id)
        if message is None or message.route is None:
            self._refused.counts['late_answer'] += 1
            return
        if message.route.id != sender:
            self._refused.note(
                'foreign_answer',
                sender.decode(),
                'it answers a call that somebody else was asked',
            )
            return
        self._answers += 1
        if answer.kind != wire.HEARTBEAT:
            del self._pending[answer.msg_id]
        message.tell(answer)


def _dropped(refused: refusals.Refusals) -> dict[str, int]:
    return {f'dropped_{name}': n for name, n in refused.counts.items()}
