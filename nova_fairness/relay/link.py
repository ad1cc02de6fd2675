# SPDX-License-Identifier: Apache-2.0

"""A connection to the broker that receives in order and publishes with
confirms.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
from typing import Any

import amqp
from kombu import connection as kombu_connection
from kombu import exceptions as kombu_exceptions

from nova_fairness import exception
from nova_fairness.relay import topology
from nova_fairness.runtime import outages

PERSISTENT = 2

HEARTBEAT_S = 10
"""Seconds between heartbeats. The broker disconnects a client after three
missing heartbeats. So a suspended process blocks messages no longer than that,
and messages that it sends later are discarded. Calls of Nova wait for 60 s by
default.
"""

_HEARTBEAT_CHECKS = 2
_CONNECT_TIMEOUT_S = 5
_CONFIRM_TIMEOUT_S = 30
_OVERHEARD = 1000
"""Largest number of messages that wait for a listener of notifications."""


@dataclasses.dataclass(frozen=True)
class Delivery:
    """A message that is not acknowledged yet.

    :ivar queue: name of its queue.
    :ivar key: routing key.
    :ivar body: bytes.
    :ivar properties: AMQP properties.
    :ivar tag: number of the delivery on this connection.
    :ivar again: whether the broker delivered it before.
    """

    queue: str
    key: str
    body: bytes = dataclasses.field(repr=False)
    properties: Mapping[str, Any] = dataclasses.field(repr=False)
    tag: int
    again: bool = False


def remove(url: str, places: topology.Places) -> None:
    """Remove all objects of the relay from a broker.

    :param url: URL of the broker.
    :param places: names of the objects.
    :raises StillUsed: if messages remain or a relay runs; then all objects
        remain.
    :raises BrokerAway: if it is unknown whether they were removed.
    """
    link = Link(url, places)
    try:
        link.remove(places)
    except exception.StillUsed:
        # The channel is closed now, so a new link declares the removed objects
        # again.
        Link(url, places).close()
        raise
    finally:
        link.close()


class Link:
    """A connection with all objects declared; for use by one thread.

    :param url: URL of the broker, or URLs of several, separated by ``;``.
    :param places: names of the objects to declare.
    :param declares: ``False`` for a client that only reads.
    :raises BrokerAway: if the broker does not answer.
    """

    def __init__(
        self, url: str, places: topology.Places, declares: bool = True
    ) -> None:
        self._inbox: list[Delivery] = []
        self._unconfirmed: set[int] = set()
        self._sent = 0
        self._refused = False
        self._unheard: list[tuple[str, str]] = []
        make: Any = kombu_connection.Connection
        self._connection = make(
            url,
            heartbeat=HEARTBEAT_S,
            connect_timeout=_CONNECT_TIMEOUT_S,
        )
        with self._mapped_errors():
            try:
                # Try every broker of the URL once: the caller tries again.
                self._connection.ensure_connection(
                    max_retries=1, interval_start=0
                )
                self._channel = self._open_channel()
                self._outbox = self._open_outbox()
                if declares:
                    topology.declare(self._channel, places)
            except BaseException:
                self._connection.close()
                raise
        outages.SERVERS.restored(outages.BROKER)

    def consume(self, queue: str, prefetch: int) -> None:
        """Start to receive from a queue.

        :param prefetch: number of messages that are delivered before they are
            acknowledged.
        """

        def keep(message: Any) -> None:
            self._inbox.append(
                Delivery(
                    queue,
                    message.delivery_info['routing_key'],
                    message.body,
                    message.properties,
                    message.delivery_tag,
                    bool(message.delivery_info.get('redelivered')),
                )
            )

        with self._mapped_errors():
            self._channel.basic_qos(0, prefetch, False)
            self._channel.basic_consume(queue, callback=keep)

    def overhear(self, exchange: str, key: str, prefetch: int) -> None:
        """Start to receive copies of other services' messages; the oldest are
        dropped.

        :param exchange: exchange of the messages.
        :param key: binding key, for a topic exchange.
        :param prefetch: number of messages that are delivered before they are
            acknowledged.
        """
        with self._mapped_errors():
            queue = self._channel.queue_declare(
                exclusive=True, arguments={'x-max-length': _OVERHEARD}
            ).queue
            self._channel.queue_bind(queue, exchange, key)
        self.consume(queue, prefetch)

    def receive(self, timeout_s: float) -> list[Delivery]:
        """Return the messages that have arrived, in order; an empty list after
        the time.
        """
        with self._mapped_errors():
            if not self._inbox:
                self._connection.heartbeat_check(rate=_HEARTBEAT_CHECKS)
                wait_s = timeout_s
                with contextlib.suppress(TimeoutError):
                    # Fetch all messages that have arrived already.
                    while True:
                        self._connection.drain_events(timeout=wait_s)
                        wait_s = 0
        came, self._inbox = list(self._inbox), []
        return came

    def publish(
        self,
        exchange: str,
        delivery: Delivery,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        """Forward a message unchanged; :meth:`settle` returns the outcome.

        :param properties: properties that replace those of the message.
        :raises BrokerAway: if it is unknown whether the broker has it.
        """
        # The broker refuses a user name that is not the relay's own.
        given = {**delivery.properties, **(properties or {})}
        given.pop('user_id', None)
        with self._mapped_errors():
            self._outbox.basic_publish(
                amqp.Message(delivery.body, **given),
                exchange,
                delivery.key,
                mandatory=True,
            )
        self._sent += 1
        self._unconfirmed.add(self._sent)

    def settle(self) -> list[tuple[str, str]]:
        """Wait until the broker has every published message.

        Messages may arrive in the meantime; they wait in order.

        :returns: exchanges and routing keys of lost messages, which no queue
            accepts.
        :raises BrokerAway: if it is unknown whether the broker has all
            messages.
        """
        with self._mapped_errors():
            while self._unconfirmed and not self._refused:
                self._connection.drain_events(timeout=_CONFIRM_TIMEOUT_S)
        if self._refused:
            raise exception.BrokerAway('the broker refused a message')
        unheard, self._unheard = self._unheard, []
        return unheard

    def taken(self, queue: str) -> bool:
        """Return whether a queue is empty and has a consumer.

        :raises BrokerAway: if that is unknown.
        """
        with self._mapped_errors():
            try:
                channel = self._connection.channel()
                found = channel.queue_declare(queue, passive=True)
            except amqp.NotFound:
                return False
            channel.close()
        waiting, listening = found.message_count, found.consumer_count
        return bool(waiting == 0 and listening > 0)

    def remove(self, places: topology.Places) -> None:
        """Remove the declared objects; afterwards this link cannot be used.

        :raises StillUsed: if messages remain there or a relay runs.
        """
        with self._mapped_errors():
            try:
                topology.remove(self._channel, places)
            except amqp.PreconditionFailed as error:
                raise exception.StillUsed(
                    f'messages are left, or a relay runs: {error.reply_text}'
                ) from error

    def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledge a message and all messages before it."""
        with self._mapped_errors():
            self._channel.basic_ack(delivery.tag, multiple=True)

    def close(self) -> None:
        """Close the connection; the broker keeps messages without
        acknowledgement.
        """
        with (
            contextlib.suppress(exception.BrokerAway),
            self._mapped_errors(False),
        ):
            self._connection.close()

    def _open_channel(self) -> Any:
        channel = self._connection.channel()
        # Do not decode the bodies of messages.
        channel.auto_decode = False
        return channel

    def _open_outbox(self) -> Any:
        channel = self._open_channel()
        channel.confirm_select()
        channel.events['basic_ack'].add(self._on_confirm)
        channel.events['basic_nack'].add(self._on_refuse)
        channel.events['basic_return'].add(self._on_return)
        return channel

    def _on_confirm(self, tag: int, multiple: bool) -> None:
        if multiple:
            self._unconfirmed = {n for n in self._unconfirmed if n > tag}
        self._unconfirmed.discard(tag)

    def _on_refuse(self, _tag: int, _multiple: bool) -> None:
        self._refused = True

    def _on_return(
        self, _why: Exception, exchange: str, key: str, _message: object
    ) -> None:
        self._unheard.append((exchange, key))

    @contextlib.contextmanager
    def _mapped_errors(self, is_told: bool = True) -> Iterator[None]:
        known = self._connection
        try:
            yield
        except amqp.PreconditionFailed as error:
            raise exception.DeclaredOtherwise(
                'an exchange or queue on the broker has other properties:'
                f' {error.reply_text}'
            ) from error
        except (
            *known.connection_errors,
            *known.channel_errors,
            kombu_exceptions.OperationalError,
        ) as error:
            if is_told:
                outages.SERVERS.lost(outages.BROKER, type(error).__name__)
            raise exception.BrokerAway(
                f'the broker does not answer: {type(error).__name__}'
            ) from error
