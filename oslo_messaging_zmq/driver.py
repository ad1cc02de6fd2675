# SPDX-License-Identifier: Apache-2.0

"""An oslo.messaging driver without a broker: ``zmq+redis://``.

Calls, casts and fanouts go directly between processes over ZeroMQ; Redis
stores only the addresses of listeners. Notifications must be stored until they
are read, so they are stored in Redis.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import sys
import threading
from typing import Any

import oslo_messaging
from oslo_messaging import exceptions
from oslo_messaging._drivers import base

from oslo_messaging_zmq import engine
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import messages
from oslo_messaging_zmq import options
from oslo_messaging_zmq.access import security
from oslo_messaging_zmq.matchmaker import redis
from oslo_messaging_zmq.notifications import sender
from oslo_messaging_zmq.redis import url as transport_url
from oslo_messaging_zmq.rpc import listener

_NATIVE_MODULES = ('select', 'socket', 'thread', 'time')
"""Modules that eventlet must not have patched."""


@dataclasses.dataclass(slots=True)
class _Process:
    """The parts of a driver in one process; a child process has its own.

    :param lock: held while the parts are created. Each process has its own,
        because a lock that is held during a fork is never released.
    """

    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    rpc: engine.Engine | None = None
    notifications: sender.RedisNotifications | None = None


class ZmqDriver(base.BaseDriver):  # type: ignore[misc]
    """The driver class that oslo.messaging loads by its entry point.

    :param conf: the program's configuration.
    :param url: the parsed transport URL.
    :param default_exchange: of targets without an exchange.
    :param allowed_remote_exmods: modules whose exceptions keep their class at
        the caller.
    :raises InvalidTransportURL: if the URL is invalid.
    :raises ConfigurationError: of oslo.messaging, if the keys are unusable, or
        eventlet has patched this process. Without keys and ``insecure``, the
        first sent message and the first listener raise it: a transport for
        notifications alone uses only Redis.
    """

    carries_bytes = True
    """Whether byte strings arrive unchanged, which drivers with JSON do
    not support."""

    def __init__(
        self,
        conf: Any,
        url: oslo_messaging.TransportURL,
        default_exchange: str | None = None,
        allowed_remote_exmods: Sequence[str] | None = None,
    ) -> None:
        _require_native_threads(url)
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self._settings = options.read(conf, url)
        if self._settings.keys_path:
            security.check(self._settings)
        self._redis = transport_url.parse(options.without_options(url))
        # What a parent made is kept: it is not to be cleaned up here.
        self._processes: dict[int, _Process] = {}
        self._is_closed = False

    def require_features(self, requeue: bool = False) -> None:
        """Accept all features: notifications can be requeued."""

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
        :raises MessagingTimeout: if a call got no answer in time.
        :raises MessageUndeliverable: if ``at_least_once`` is set and there is
            no listener.
        :raises MessageDeliveryFailure: if the message cannot be sent.
        """
        kind = messages.CALL if wait_for_reply else messages.CAST
        request = messages.RequestMessage(
            messages.FANOUT if target.fanout else kind,
            '',
            self._exchange(target),
            target.topic,
            '' if target.fanout else target.server or '',
            call_monitor_timeout,
            ctxt,
            message,
        )
        running = self._engine_of_process()
        try:
            if target.fanout:
                return running.fan_out(request)
            if getattr(transport_options, 'at_least_once', False):
                running.requests.require(request)
            if wait_for_reply:
                return running.requests.call(request, timeout)
            return running.requests.cast(request, retry)
        except errors.UnsendableMessage as error:
            raise oslo_messaging.MessageDeliveryFailure(str(error)) from error

    def send_notification(
        self,
        target: oslo_messaging.Target,
        ctxt: dict[str, Any],
        message: dict[str, Any],
        version: float,
        retry: int | None = None,
    ) -> None:
        """Store a notification in Redis until it is read.

        :raises MessageDeliveryFailure: if all tries failed.
        """
        self._notifications().send(
            self._exchange(target), target.topic, ctxt, message, retry
        )

    def listen(
        self,
        target: oslo_messaging.Target,
        batch_size: int,
        batch_timeout: float | None,
    ) -> listener.RpcListener:
        """Create a listener of a topic; messages wait until it is started."""
        address = (self._exchange(target), target.topic, target.server)
        return self._engine_of_process().listen(
            address, batch_size, batch_timeout
        )

    def listen_for_notifications(
        self,
        targets_and_priorities: Sequence[tuple[oslo_messaging.Target, str]],
        pool: str | None,
        batch_size: int,
        batch_timeout: float | None,
    ) -> Any:
        """Create a listener of notifications of some topics and priorities."""
        addresses = [
            (self._exchange(target), f'{target.topic}.{priority}')
            for target, priority in targets_and_priorities
        ]
        return self._notifications().listener(
            addresses, pool, batch_size, batch_timeout
        )

    def statistics(self) -> Mapping[str, int]:
        """Return counters of this process since the first use, by name.

        The reference page of the driver explains the names.
        """
        process = self._process()
        counts: dict[str, int] = {}
        if process.rpc:
            counts.update(process.rpc.statistics())
        if process.notifications:
            for name, n in process.notifications.statistics().items():
                counts[f'notifications_{name}'] = n
        return counts

    def cleanup(self) -> None:
        """Close all parts; returns when that is done."""
        process = self._process()
        with process.lock:
            self._is_closed = True
            running, process.rpc = process.rpc, None
            stored, process.notifications = process.notifications, None
        if running:
            running.close()
        if stored:
            stored.cleanup()

    def _exchange(self, target: oslo_messaging.Target) -> str:
        return target.exchange or self._default_exchange or ''

    def _process(self) -> _Process:
        pid = os.getpid()
        present = self._processes.get(pid)
        return present or self._processes.setdefault(pid, _Process())

    def _engine_of_process(self) -> engine.Engine:
        process = self._process()
        if process.rpc is not None:
            return process.rpc
        with process.lock:
            self._check_open()
            if process.rpc is None:
                process.rpc = engine.Engine(
                    self._settings,
                    self._matchmaker(),
                    list(self._allowed_remote_exmods),
                    self._redis.place,
                )
            return process.rpc

    def _matchmaker(self) -> redis.RedisMatchmaker:
        settings = self._settings
        return redis.RedisMatchmaker(
            self._redis,
            ttl_s=settings.address_ttl,
            poll_s=settings.poll_interval,
            prefix=settings.redis_prefix,
            timeout_s=settings.redis_timeout,
        )

    def _notifications(self) -> sender.RedisNotifications:
        process = self._process()
        with process.lock:
            self._check_open()
            if process.notifications is None:
                process.notifications = sender.RedisNotifications(
                    self._redis,
                    prefix=self._settings.redis_prefix,
                    max_length=self._settings.notifications_kept,
                    max_message_size=self._settings.max_message_size,
                )
            return process.notifications

    def _check_open(self) -> None:
        if self._is_closed:
            msg = 'the transport was cleaned up'
            raise oslo_messaging.MessageDeliveryFailure(msg)


def _require_native_threads(url: oslo_messaging.TransportURL) -> None:
    """Refuse a process that eventlet has patched.

    There, one blocking green thread stops all others: answers, addresses and
    leases would be late without a visible cause.
    """
    patcher = sys.modules.get('eventlet.patcher')
    if patcher is None:
        return
    patched = [
        name for name in _NATIVE_MODULES if patcher.is_monkey_patched(name)
    ]
    if patched:
        raise exceptions.ConfigurationError(
            f'{url.transport}:// needs native threads, and eventlet has'
            f' patched {", ".join(patched)} in this process. Start it without'
            ' eventlet; a service of Nova does so with'
            ' OS_NOVA_DISABLE_EVENTLET_PATCHING=true in its environment, or'
            ' concurrency_backend = threading in [DEFAULT] of nova.conf'
        )
