# SPDX-License-Identifier: Apache-2.0

"""All running parts of one driver in one process."""

import collections
from collections.abc import Callable
from collections.abc import Mapping
import os
import threading
from typing import Any

from oslo_messaging_zmq import contexts
from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import options
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import guard
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import caller
from oslo_messaging_zmq.rpc import fanout
from oslo_messaging_zmq.rpc import listener
from oslo_messaging_zmq.rpc import port
from oslo_messaging_zmq.rpc import requests

MakeMatchmaker = Callable[[], contract.Matchmaker]


class Engine:
    """Sockets, threads and the matchmaker of a driver.

    It begins when a driver is used first, and again in a forked process.

    :param settings: of the driver.
    :param make_matchmaker: makes what knows who listens.
    :param exception_modules: of which remote exceptions are raised again.
    :param name: of the driver in the log.
    :raises ConfigurationError: there are no keys, and nobody allowed that.
    """

    def __init__(
        self,
        settings: options.Settings,
        make_matchmaker: MakeMatchmaker,
        exception_modules: list[str],
        name: str,
    ) -> None:
        guard.check(settings)
        native_log.prepare()
        self.pid = os.getpid()
        self.settings = settings
        self._context = contexts.acquire()
        self._guard = guard.make(settings, self._context, name)
        self._matches = make_matchmaker()
        sending = (self._context, self._guard, settings, name)
        self._caller = caller.Caller(*sending)
        self._fanout = fanout.Fanout(*sending)
        self.requests = requests.Requests(
            self._caller, self._matches, settings, exception_modules, name
        )
        self._listeners: list[listener.Listener] = []
        self._lock = threading.Lock()
        self._matches.watch(self._caller.keep)
        self._guard.on_withdrawn(self._withdrawn)

    def fan_out(self, request: wire.Request) -> None:
        """Send a message to everybody who listens to its topic.

        :raises UnsendableMessage: it has no form on the wire.
        """
        payload = wire.encode_request(request, self.settings.max_message_size)
        peers = self._matches.peers(request.exchange, request.topic)
        self._fanout.send(request.exchange, request.topic, peers, payload)

    def listen(
        self,
        address: port.Address,
        batch_size: int,
        batch_timeout: float | None,
    ) -> listener.Listener:
        """Make a listener and announce it.

        :param address: exchange, topic and server.
        """
        self._guard.look_at_own(address[2])
        made = listener.Listener(
            self._context,
            self._guard,
            self.settings,
            address,
            self._left,
            batch_size,
            batch_timeout,
        )
        with self._lock:
            self._listeners = [
                each for each in self._listeners if not each.is_closed
            ]
            self._listeners.append(made)
        self._matches.register(made.peer)
        return made

    def statistics(self) -> Mapping[str, int]:
        """Counters of all parts, by name."""
        total: collections.Counter[str] = collections.Counter()
        with self._lock:
            listeners = list(self._listeners)
        parts: list[Any] = [
            self._caller,
            self._fanout,
            self.requests,
            *listeners,
        ]
        for part in parts:
            total.update(part.statistics())
        for prefix, other in (
            ('matchmaker', self._matches),
            ('access', self._guard),
        ):
            for name, n in other.statistics().items():
                total[f'{prefix}_{name}'] = n
        return dict(total)

    def close(self) -> None:
        """End everything; waits until it is done."""
        with self._lock:
            listeners = list(self._listeners)
        for each in listeners:
            each.stop()
            each.cleanup()
        self._matches.stop()
        self._caller.close()
        self._fanout.close()
        self._guard.stop()
        contexts.release(self._context)

    def _left(self, gone: addressing.Peer) -> None:
        self._matches.unregister(gone.id)

    def _withdrawn(self, key: str) -> None:
        self._caller.withdraw(key)
        self._fanout.withdraw(key)
