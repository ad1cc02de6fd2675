# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One connection to the broker: receive in order, publish with confirms."""

import collections
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

PERSISTENT = 2

_CONNECT_TIMEOUT_S = 5
_CONFIRM_TIMEOUT_S = 30
_HEARTBEAT_S = 30
_HEARTBEAT_CHECKS = 2


@dataclasses.dataclass(frozen=True)
class Delivery:
    """A message that the broker waits to be told about.

    :ivar queue: that it came from.
    :ivar key: routing key.
    :ivar body: bytes.
    :ivar properties: of AMQP.
    :ivar tag: number on this connection.
    """

    queue: str
    key: str
    body: bytes = dataclasses.field(repr=False)
    properties: Mapping[str, Any] = dataclasses.field(repr=False)
    tag: int


class Link:
    """A connection with everything declared; for one thread.

    :param url: of the broker or, divided by ``;``, of several.
    :param places: what is declared.
    :raises BrokerAway: if it cannot be reached.
    """

    def __init__(self, url: str, places: topology.Places) -> None:
        self._inbox: collections.deque[Delivery] = collections.deque()
        self._returned = False
        make: Any = kombu_connection.Connection
        self._connection = make(
            url,
            heartbeat=_HEARTBEAT_S,
            connect_timeout=_CONNECT_TIMEOUT_S,
            transport_options={'confirm_publish': True},
        )
        with self._failures():
            try:
                # Every broker of the URL once: who calls tries again.
                self._connection.ensure_connection(
                    max_retries=1, interval_start=0
                )
                self._channel = self._opened()
                self._outbox = self._opened()
                self._outbox.events['basic_return'].add(self._on_return)
                topology.declare(self._channel, places)
            except BaseException:
                self._connection.close()
                raise

    def consume(self, queue: str, prefetch: int) -> None:
        """Begin to receive from a queue.

        :param prefetch: how many messages come before they are answered.
        """

        def keep(message: Any) -> None:
            self._inbox.append(
                Delivery(
                    queue,
                    message.delivery_info['routing_key'],
                    message.body,
                    message.properties,
                    message.delivery_tag,
                )
            )

        with self._failures():
            self._channel.basic_qos(0, prefetch, False)
            self._channel.basic_consume(queue, callback=keep)

    def receive(self, timeout_s: float) -> Delivery | None:
        """Give the next message; ``None`` if none comes in time."""
        with self._failures():
            if not self._inbox:
                self._connection.heartbeat_check(rate=_HEARTBEAT_CHECKS)
                with contextlib.suppress(TimeoutError):
                    self._connection.drain_events(timeout=timeout_s)
        return self._inbox.popleft() if self._inbox else None

    def publish(
        self,
        exchange: str,
        delivery: Delivery,
        properties: Mapping[str, Any] | None = None,
    ) -> bool:
        """Send a message on as it came, and wait until the broker has it.

        Others may come in meanwhile; they wait in order.

        :param properties: that are to be others.
        :returns: ``False`` if nobody listens there: the message is nowhere.
        :raises BrokerAway: if it is not known whether the broker has it.
        """
        # The broker refuses a name that is not the relay's own.
        given = {**delivery.properties, **(properties or {})}
        given.pop('user_id', None)
        self._returned = False
        with self._failures():
            self._outbox.basic_publish(
                amqp.Message(delivery.body, **given),
                exchange,
                delivery.key,
                mandatory=True,
                confirm_timeout=_CONFIRM_TIMEOUT_S,
            )
        return not self._returned

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the broker that a message is safe elsewhere."""
        with self._failures():
            self._channel.basic_ack(delivery.tag)

    def close(self) -> None:
        """Leave; what was not acknowledged stays with the broker."""
        with contextlib.suppress(exception.BrokerAway), self._failures():
            self._connection.close()

    def _opened(self) -> Any:
        channel = self._connection.channel()
        # Bodies stay bytes.
        channel.auto_decode = False
        return channel

    def _on_return(self, *_arguments: object) -> None:
        self._returned = True

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        known = self._connection
        try:
            yield
        except (
            *known.connection_errors,
            *known.channel_errors,
            amqp.exceptions.MessageNacked,
            kombu_exceptions.OperationalError,
        ) as error:
            raise exception.BrokerAway(
                f'the broker does not answer: {type(error).__name__}'
            ) from error
