# SPDX-License-Identifier: Apache-2.0

"""An oslo.messaging driver without a broker: ``zmq+redis://``.

Calls, casts and fanouts go directly from process to process over ZeroMQ;
Redis only says who listens where. Notifications, which must be stored until
somebody reads them, are kept in Redis.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import logging
import os
import threading
from typing import Any

import oslo_messaging
from oslo_messaging._drivers import base

from oslo_messaging_zmq import engine
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import options
from oslo_messaging_zmq import wire
from oslo_messaging_zmq.access import guard
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import redis
from oslo_messaging_zmq.notifications import sender
from oslo_messaging_zmq.redis import url as transport_url
from oslo_messaging_zmq.rpc import listener

LOG = logging.getLogger(__name__)


class ZmqDriver(base.BaseDriver):  # type: ignore[misc]
    """The driver, as oslo.messaging loads it by its entry point.

    :param conf: the program's configuration.
    :param url: the transport URL, parsed.
    :param default_exchange: of targets that name none.
    :param allowed_remote_exmods: modules whose exceptions are raised again
        at the caller as what they are.
    :param matches: makes the matchmaker, in place of one with Redis.
    :raises InvalidTransportURL: the URL is not understood.
    :raises ConfigurationError: of oslo.messaging, when the keys cannot be
        used. Without keys and without ``insecure`` the first message to send
        and the first listener raise it: a transport of notifications alone
        talks with nobody but Redis.
    """

    carries_bytes = True
    """Byte strings arrive as such, which drivers that use JSON cannot do."""

    def __init__(
        self,
        conf: Any,
        url: oslo_messaging.TransportURL,
        default_exchange: str | None = None,
        allowed_remote_exmods: Sequence[str] | None = None,
        matches: Callable[[], contract.Matchmaker] | None = None,
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self._settings = options.read(conf, url)
        if self._settings.keys_path:
            guard.check(self._settings)
        self._redis = transport_url.parse(options.without_options(url))
        self._matches = matches or self._redis_matchmaker
        self._lock = threading.Lock()
        self._engine: engine.Engine | None = None
        self._stored: sender.RedisNotifications | None = None
        self._is_closed = False

    def require_features(self, requeue: bool = False) -> None:
        """Accept everything: notifications can be requeued."""

    def send(
        self,
        target: oslo_messaging.Target,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: Any = None,
    ) -> Any:
        """Send a call, a cast or a fanout.

        :returns: what the endpoint of a call returned.
        :raises MessagingTimeout: a call got no answer in time.
        :raises MessageUndeliverable: ``at_least_once`` was asked for and
            nobody listens.
        :raises MessageDeliveryFailure: the message cannot be sent.
        """
        request = wire.Request(
            wire.CALL if wait_for_reply else wire.CAST,
            '',
            target.exchange or self._default_exchange or '',
            target.topic,
            target.server or '',
            call_monitor_timeout,
            ctxt,
            message,
        )
        running = self._running()
        if target.fanout:
            return self._fan_out(running, request)
        if getattr(transport_options, 'at_least_once', False):
            running.requests.require(request)
        if wait_for_reply:
            return running.requests.call(request, timeout)
        return running.requests.cast(request, retry)

    def send_notification(
        self,
        target: oslo_messaging.Target,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        version: float,
        retry: int | None = None,
    ) -> None:
        """Store a notification in Redis until it was read.

        :raises MessageDeliveryFailure: the tries are used up.
        """
        exchange = target.exchange or self._default_exchange or ''
        self._store().send(exchange, target.topic, ctxt, message, retry)

    def listen(
        self,
        target: oslo_messaging.Target,
        batch_size: int,
        batch_timeout: float | None,
    ) -> listener.Listener:
        """Listen to a topic; messages wait until the listener is started."""
        exchange = target.exchange or self._default_exchange or ''
        address = (exchange, target.topic, target.server)
        return self._running().listen(address, batch_size, batch_timeout)

    def listen_for_notifications(
        self,
        targets_and_priorities: Sequence[tuple[oslo_messaging.Target, str]],
        pool: str | None,
        batch_size: int,
        batch_timeout: float | None,
    ) -> Any:
        """Listen to notifications of some topics and priorities."""
        addresses = [
            (
                target.exchange or self._default_exchange or '',
                f'{target.topic}.{priority}',
            )
            for target, priority in targets_and_priorities
        ]
        return self._store().listener(
            addresses, pool, batch_size, batch_timeout
        )

    def statistics(self) -> Mapping[str, int]:
        """Count what happened in this process since the first use.

        See the reference page of the driver for the names.
        """
        running, stored = self._engine, self._stored
        counts = dict(running.statistics()) if running else {}
        if stored:
            for name, n in stored.statistics().items():
                counts[f'notifications_{name}'] = n
        return counts

    def cleanup(self) -> None:
        """End everything; waits until it is done."""
        with self._lock:
            self._is_closed = True
            running, self._engine = self._engine, None
            stored, self._stored = self._stored, None
        if running and running.pid == os.getpid():
            running.close()
        if stored:
            stored.cleanup()

    def _fan_out(self, running: engine.Engine, request: wire.Request) -> None:
        request.kind = wire.FANOUT
        request.server = ''
        try:
            running.fan_out(request)
        except errors.UnsendableMessage as error:
            raise oslo_messaging.MessageDeliveryFailure(str(error)) from error

    def _running(self) -> engine.Engine:
        running = self._engine
        # What a forked process inherits has neither threads nor sockets.
        if running is not None and running.pid == os.getpid():
            return running
        with self._lock:
            self._check_open()
            if self._engine is None or self._engine.pid != os.getpid():
                self._engine = engine.Engine(
                    self._settings,
                    self._matches,
                    list(self._allowed_remote_exmods),
                    self._redis.place,
                )
            return self._engine

    def _store(self) -> sender.RedisNotifications:
        with self._lock:
            self._check_open()
            if self._stored is None:
                self._stored = sender.RedisNotifications(
                    self._redis,
                    prefix=self._settings.redis_prefix,
                    max_length=self._settings.notifications_kept,
                    max_message_size=self._settings.max_message_size,
                    most_open=self._settings.notifications_in_work,
                    lease_s=self._settings.notifications_lease,
                )
            return self._stored

    def _check_open(self) -> None:
        if self._is_closed:
            msg = 'the transport was cleaned up'
            raise oslo_messaging.MessageDeliveryFailure(msg)

    def _redis_matchmaker(self) -> contract.Matchmaker:
        settings = self._settings
        return redis.RedisMatchmaker(
            self._redis,
            ttl_s=settings.address_ttl,
            poll_s=settings.poll_interval,
            prefix=settings.redis_prefix,
            timeout_s=settings.redis_timeout,
        )
