# SPDX-License-Identifier: Apache-2.0

"""Which listener gets a call or a cast, and what if there is none."""

from collections.abc import Iterable
import itertools
import random
import time
from typing import Protocol

from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.matchmaker import contract

Peers = tuple[addressing.Peer, ...]

_LOOK_UP_S = 1.0
_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Between two look-ups for somebody who may come; the last one repeats."""


class Connections(Protocol):
    """What a choice needs to know about connections.

    :ivar is_closed: there are none any more.
    """

    is_closed: bool

    def is_up(self, peer: addressing.Peer) -> bool | None:
        """Whether a listener is connected, None if nobody knows."""

    def settle(self, peers: Peers) -> None:
        """Connect to listeners and wait until each is up or down."""


class Chooser:
    """Chooses listeners for one driver.

    :param matches: knows who listens.
    :param connections: to the listeners.
    """

    def __init__(
        self, matches: contract.Matchmaker, connections: Connections
    ) -> None:
        self._matches = matches
        self._connections = connections
        self._turns: dict[tuple[str, str], itertools.count[int]] = {}

    def choose(
        self,
        exchange: str,
        topic: str,
        server: str,
        avoid: Iterable[str] = (),
    ) -> addressing.Peer | None:
        """Choose who gets the next message.

        A server is chosen by its newest record; '' takes the listeners of
        the topic in turn. Who is down is not chosen: a message to it would
        wait for its connection, and miss its next life on another port.

        :param avoid: ids of listeners that refused.
        :returns: None if nobody listens who is up, after a fresh look-up.
        """
        peers = self._matches.peers(exchange, topic)
        usable = self._usable(peers, server, avoid)
        if not any(map(self._connections.is_up, usable)):
            peers = self._matches.look_up(exchange, topic, _LOOK_UP_S)
            usable = self._usable(peers, server, avoid)
        return self._pick(usable, (exchange, topic), server)

    def wait(
        self,
        exchange: str,
        topic: str,
        server: str,
        deadline: float,
        avoid: Iterable[str] = (),
    ) -> addressing.Peer | None:
        """Choose like choose(), waiting for somebody to come.

        :param deadline: when to give up, of the monotonic clock.
        :returns: None if nobody came in time, or the connections are closed.
        """
        pauses = itertools.chain(_PAUSES_S, itertools.repeat(_PAUSES_S[-1]))
        while True:
            peer = self.choose(exchange, topic, server, avoid)
            left = deadline - time.monotonic()
            if peer is not None or left <= 0 or self._connections.is_closed:
                return peer
            time.sleep(min(next(pauses), left))

    def _usable(
        self, peers: Peers, server: str, avoid: Iterable[str]
    ) -> list[addressing.Peer]:
        usable = [
            peer
            for peer in peers
            if (not server or peer.server == server) and peer.id not in avoid
        ]
        unknown = tuple(
            peer for peer in usable if self._connections.is_up(peer) is None
        )
        if unknown:
            self._connections.settle(unknown)
        return usable

    def _pick(
        self,
        usable: list[addressing.Peer],
        topic: tuple[str, str],
        server: str,
    ) -> addressing.Peer | None:
        up = [peer for peer in usable if self._connections.is_up(peer)]
        if not up:
            return None
        if server:
            return max(up, key=lambda peer: peer.generation)
        return up[self._turn(topic) % len(up)]

    def _turn(self, topic: tuple[str, str]) -> int:
        if topic not in self._turns:
            # Clients that live for one call must not all meet the same one.
            self._turns[topic] = itertools.count(random.randrange(1 << 16))
        return next(self._turns[topic])
