# SPDX-License-Identifier: Apache-2.0

"""Connections of one sending socket to the known listeners.

A ROUTER socket names each of its connections before it connects, so that it
can send to one peer. The names belong to this process and are never reused:
ZeroMQ aborts the process if a name is in use.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import itertools

import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.access import refusals
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import contract

_NUMBERS = itertools.count(1)
LINGER_MS = 1000
"""How long a closed socket still sends its queued messages, in
milliseconds."""

_RECONNECT_MS = (100, 2000)
# Without these a connection that was cut comes back when TCP tries again,
# up to a minute after the way is free.
_TCP_TIMEOUT_MS = 5000
_CONNECT_MS = 2000


class PeerRoute:
    """One connection.

    ``up`` is whether it is established, ``None`` while that is unknown;
    ``ups`` is how often it was established.

    :param peer: the listener.
    :param endpoint: its address.
    """

    __slots__ = ('endpoint', 'id', 'peer', 'up', 'ups')

    def __init__(
        self, peer: contract.AnnouncedListener, endpoint: str
    ) -> None:
        self.id = b'p%d' % next(_NUMBERS)
        self.peer = peer
        self.endpoint = endpoint
        self.up: bool | None = None
        self.ups = 0


class Routes:
    """All connections of one socket; used by one thread at a time.

    :param socket: a ROUTER socket of :func:`sender`.
    :param guard: prepares it for each connection.
    :param is_fanout: which of the two endpoints of a peer is used.
    :param refused: records peers that are refused.
    """

    def __init__(
        self,
        socket: security.Socket,
        guard: security.SocketGuard,
        refused: refusals.Refusals,
        *,
        is_fanout: bool,
    ) -> None:
        self._socket = socket
        self._guard = guard
        self._refused = refused
        self._is_fanout = is_fanout
        self._by_peer: dict[str, PeerRoute] = {}
        self._by_endpoint: dict[str, PeerRoute] = {}

    def __len__(self) -> int:
        return len(self._by_peer)

    def __iter__(self) -> Iterator[PeerRoute]:
        return iter(list(self._by_peer.values()))

    def find(self, peer: contract.AnnouncedListener) -> PeerRoute | None:
        """Return the connection to a listener as it is announced now, if
        any.
        """
        route = self._by_peer.get(peer.id)
        return route if route and _is_same(route.peer, peer) else None

    def named(self, route_id: bytes) -> PeerRoute | None:
        """Return the connection with a name in ZeroMQ; ``None`` if there
        is none.
        """
        for route in self:
            if route.id == route_id:
                return route
        return None

    def to(self, peer: contract.AnnouncedListener) -> PeerRoute | None:
        """Return the connection to a listener; create it if it is missing.

        :returns: ``None`` if this listener is refused.
        """
        present = self.find(peer)
        if present is not None:
            return present
        endpoint = peer.fanout if self._is_fanout else peer.rpc
        route = PeerRoute(peer, endpoint)
        return route if self._connect(route) else None

    def forget(self, peer_id: str) -> PeerRoute | None:
        """Disconnect from a listener.

        :returns: the former connection, if there was one.
        """
        route = self._by_peer.pop(peer_id, None)
        if route is not None:
            del self._by_endpoint[route.endpoint]
            self._socket.disconnect(route.endpoint)
        return route

    def keep(
        self,
        exchange: str,
        topic: str,
        peers: Iterable[contract.AnnouncedListener],
    ) -> list[PeerRoute]:
        """Disconnect from all former listeners of a topic.

        :returns: the closed connections.
        """
        ids = {peer.id for peer in peers}
        gone = [
            peer_id
            for peer_id, route in self._by_peer.items()
            if peer_id not in ids
            and (route.peer.exchange, route.peer.topic) == (exchange, topic)
        ]
        return [route for each in gone if (route := self.forget(each))]

    def withdraw(self, key: str) -> list[PeerRoute]:
        """Disconnect from all peers with a key.

        :returns: the closed connections.
        """
        gone = [
            peer_id
            for peer_id, route in self._by_peer.items()
            if route.peer.key == key
        ]
        return [route for each in gone if (route := self.forget(each))]

    def at(self, endpoint: str) -> list[PeerRoute]:
        """Return the connections that a monitor's event may concern.

        ZeroMQ names a host as it was first connected to, and by its address
        after the resolution: then only the port is compared.
        """
        found = self._by_endpoint.get(endpoint)
        if found is not None:
            return [found]
        port = endpoint.rpartition(':')[2]
        return [
            route
            for route in self._by_peer.values()
            if route.endpoint.rpartition(':')[2] == port
        ]

    def _connect(self, route: PeerRoute) -> bool:
        try:
            peer = route.peer
            self._guard.as_client(self._socket, peer.key, peer.server)
            # Not before: whoever is refused disturbs no connection.
            self.forget(peer.id)
            # Who had the port before is gone for certain.
            if route.endpoint in self._by_endpoint:
                self.forget(self._by_endpoint[route.endpoint].peer.id)
            self._socket.setsockopt(zmq.CONNECT_ROUTING_ID, route.id)
            self._socket.setsockopt(zmq.IPV6, int('[' in route.endpoint))
            self._socket.connect(route.endpoint)
        except (errors.KeyRefused, zmq.ZMQError) as error:
            is_foreign = isinstance(error, errors.ForeignName)
            kind = 'foreign_name' if is_foreign else 'unusable_peer'
            name = f'{route.peer.server} at {route.endpoint}'
            self._refused.note(kind, name, str(error))
            return False
        self._by_peer[route.peer.id] = route
        self._by_endpoint[route.endpoint] = route
        return True


def sender(context: security.Context, queue_length: int) -> security.Socket:
    """Create a socket that can send to each of its connections.

    :param queue_length: largest number of waiting messages per connection.
    """
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.SNDHWM, queue_length)
    socket.setsockopt(zmq.RCVHWM, queue_length)
    socket.setsockopt(zmq.LINGER, LINGER_MS)
    socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS[0])
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MS[1])
    socket.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT_MS)
    socket.setsockopt(zmq.TCP_MAXRT, _TCP_TIMEOUT_MS)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    return socket


def _is_same(
    one: contract.AnnouncedListener, other: contract.AnnouncedListener
) -> bool:
    # Asked for every listener of a topic with every call.
    return one is other or (one.server, one.rpc, one.fanout, one.key) == (
        other.server,
        other.rpc,
        other.fanout,
        other.key,
    )
