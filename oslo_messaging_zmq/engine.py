# SPDX-License-Identifier: Apache-2.0

"""All running parts of one driver in one process.

They share a ZeroMQ context. A context has threads, which a fork does not copy,
so a child process creates its own engine.
"""

import collections
from collections.abc import Mapping
import threading

import zmq

from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import caller
from oslo_messaging_zmq.rpc import fanout
from oslo_messaging_zmq.rpc import listener
from oslo_messaging_zmq.rpc import requests


class Engine:
    """Sockets, threads and the matchmaker of a driver.

    :param settings: of the driver.
    :param matchmaker: finds listeners.
    :param exception_modules: modules whose remote exceptions keep their class.
    :param name: of the driver in the log.
    :raises ConfigurationError: if there are no keys, and ``insecure`` is not
        set.
    """

    def __init__(
        self,
        settings: options.DriverSettings,
        matchmaker: contract.Matchmaker,
        exception_modules: list[str],
        name: str,
    ) -> None:
        security.check(settings)
        self.settings = settings
        # Not more than its thousand sockets: it keeps room for all that it
        # may have, and 250 listeners are more than a process has.
        self._context: security.Context = zmq.Context()
        self._guard = security.make(settings, self._context, name)
        self._matchmaker = matchmaker
        sending = (self._context, self._guard, settings, name)
        self._caller = caller.RpcCaller(*sending)
        self._fanout = fanout.FanoutSender(*sending)
        self.requests = requests.Requests(
            self._caller, self._matchmaker, settings, exception_modules, name
        )
        self._listeners: list[listener.RpcListener] = []
        self._lock = threading.Lock()
        self._matchmaker.watch(self._caller.keep)
        self._guard.on_withdrawn(self._withdrawn)

    def fan_out(self, request: messages.RequestMessage) -> None:
        """Send a message to all listeners of its topic.

        :raises UnsendableMessage: if it cannot be encoded, or is too large.
        """
        payload = messages.encode_request(
            request, self.settings.max_message_size
        )
        peers = self._matchmaker.peers(request.exchange, request.topic)
        self._fanout.send(request.exchange, request.topic, peers, payload)

    def listen(
        self,
        address: messages.Address,
        batch_size: int,
        batch_timeout: float | None,
    ) -> listener.RpcListener:
        """Create a listener, and announce it.

        :param address: exchange, topic and server.
        """
        self._guard.look_at_own(address[2])
        made = listener.RpcListener(
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
        self._matchmaker.register(made.peer)
        return made

    def statistics(self) -> Mapping[str, int]:
        """Return counters of all parts, by name."""
        with self._lock:
            listeners = list(self._listeners)
        total: collections.Counter[str] = collections.Counter()
        for part in (self._caller, self._fanout, self.requests):
            total.update(part.statistics())
        for each in listeners:
            total.update(each.statistics())
        for prefix, other in (
            ('matchmaker', self._matchmaker),
            ('access', self._guard),
        ):
            for name, n in other.statistics().items():
                total[f'{prefix}_{name}'] = n
        return dict(total)

    def close(self) -> None:
        """Close all parts; returns when that is done."""
        with self._lock:
            listeners = list(self._listeners)
        for each in listeners:
            each.stop()
            each.cleanup()
        self._matchmaker.stop()
        self._caller.close()
        self._fanout.close()
        self._guard.stop()
        self._context.term()

    def _left(self, gone: contract.AnnouncedListener) -> None:
        self._matchmaker.unregister(gone.id)

    def _withdrawn(self, key: str) -> None:
        self._caller.withdraw(key)
        self._fanout.withdraw(key)
