# SPDX-License-Identifier: Apache-2.0

"""Messages to everybody who listens to a topic.

They are encoded once and sent by the thread that calls. A peer that does not
read makes the queue of its own connection full, and only that.
"""

import collections
from collections.abc import Mapping
import threading

import zmq

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import guard as security
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.rpc import routes

Peers = tuple[addressing.Peer, ...]

# Plain numbers: those of ZeroMQ's flags cost as much as sending.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.SNDMORE) | _NOBLOCK


class Fanout:
    """Sends to many; there is one per driver and process.

    :param context: of this process.
    :param guard: prepares connections.
    :param settings: of the driver.
    :param name: of the driver in the log.
    """

    def __init__(
        self,
        context: contexts.Context,
        guard: security.Guard,
        settings: options.Settings,
        name: str,
    ) -> None:
        # Green under eventlet, so only those who send may take it; native
        # threads leave word.
        self._lock = threading.Lock()
        self._withdrawn: collections.deque[str] = collections.deque()
        self._socket = routes.sender(context, settings.fanout_queue_length)
        self._socket.setsockopt(zmq.RCVHWM, 1)
        # Without the conveniences that cost more than sending does.
        self._send = super(zmq.Socket, self._socket).send
        self._refused = refusals.Refusals(name)
        self._routes = routes.Routes(
            self._socket, guard, self._refused, is_fanout=True
        )
        self._known: dict[tuple[str, str], Peers] = {}
        self._ids: dict[tuple[str, str], list[bytes]] = {}
        self._sent = self._delivered = 0
        self._is_closed = False

    def send(
        self, exchange: str, topic: str, peers: Peers, payload: bytes
    ) -> int:
        """Send a message to listeners of a topic.

        :param peers: all of them.
        :returns: for how many of them ZeroMQ has taken it.
        """
        frame = zmq.Frame(payload)
        with self._lock:
            if self._is_closed:
                return 0
            while self._withdrawn:
                self._known.clear()
                self._routes.withdraw(self._withdrawn.popleft())
            if self._known.get((exchange, topic)) is not peers:
                self._renew(exchange, topic, peers)
            taken = self._deliver(self._ids[exchange, topic], frame)
            self._sent += 1
            self._delivered += taken
        return taken

    def withdraw(self, key: str) -> None:
        """Send nothing more to anybody who has a key."""
        self._withdrawn.append(key)

    def statistics(self) -> Mapping[str, int]:
        """Counters by name."""
        counts = {
            'fanouts_sent': self._sent,
            'fanouts_delivered': self._delivered,
            'fanout_peers_connected': len(self._routes),
        }
        return counts | {
            f'fanout_dropped_{name}': n
            for name, n in self._refused.counts.items()
        }

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._is_closed = True
            self._socket.close()

    def _renew(self, exchange: str, topic: str, peers: Peers) -> None:
        self._routes.keep(exchange, topic, peers)
        found = filter(None, map(self._routes.to, peers))
        self._ids[exchange, topic] = [route.id for route in found]
        self._known[exchange, topic] = peers

    def _deliver(self, ids: list[bytes], frame: zmq.Frame) -> int:
        send = self._send
        missed = 0
        for route_id in ids:
            try:
                send(route_id, _MORE)
                send(frame, _NOBLOCK, False)  # shared, not copied
            except zmq.ZMQError as error:
                missed += 1
                self._missed(route_id, error)
        return len(ids) - missed

    def _missed(self, route_id: bytes, error: zmq.ZMQError) -> None:
        route = self._routes.named(route_id)
        who = route.endpoint if route else route_id.decode()
        kind = 'queue_full' if error.errno == zmq.EAGAIN else 'unreachable'
        self._refused.note(kind, who, f'a fanout was dropped: {error}')
