# SPDX-License-Identifier: Apache-2.0

"""Routes of messages on the broker, and the objects declared for them.

::

    nova-api -> FRONT -> FRONT.routes --(other services)----> TARGET -> Nova
                           |--(conductor.#)--> FRONT.conductor --relay--^
                           |                         `--> FRONT.held --> store
                           `--(others)--> FRONT.unrouted

All objects of the relay are durable: they exist before the relay starts, and
after the broker restarts. FRONT itself must be as nova-api declares it with
``amqp_durable_queues``, because the broker compares declarations. Therefore
all special rules are in an exchange behind FRONT.

Messages that have to wait go to the broker that nova-api itself is configured
with. On the brokers of further cells all messages go from FRONT.routes to
TARGET.
"""

import dataclasses
from typing import Any

from nova_fairness import exception


@dataclasses.dataclass(frozen=True)
class Places:
    """Names on the broker.

    :ivar front: exchange to which nova-api sends.
    :ivar target: exchange to which the other services of Nova listen.
    :ivar target_durable: whether Nova declares the target durable
        (``amqp_durable_queues``).
    :ivar passing: topics that do not pass through the relay.
    :ivar sorted_key: topic whose messages the relay sorts.
    :ivar holds: ``False`` on the broker of a further cell: no message waits.
    """

    front: str = 'nova_front'
    target: str = 'nova'
    target_durable: bool = False
    passing: tuple[str, ...] = (
        'compute.#',
        'compute-alt.#',
        'scheduler.#',
        'console.#',
        'notifications.#',
        'versioned_notifications.#',
    )
    sorted_key: str = 'conductor.#'
    holds: bool = True

    def __post_init__(self) -> None:
        if self.front == self.target:
            raise exception.RelayError(
                f'front and target must differ, both are {self.front}'
            )

    @property
    def routes(self) -> str:
        """The exchange that routes messages."""
        return f'{self.front}.routes'

    @property
    def conductor(self) -> str:
        """The queue of messages that the relay sorts."""
        return f'{self.front}.conductor'

    @property
    def held(self) -> str:
        """The exchange and the queue of messages that are to be stored."""
        return f'{self.front}.held'

    @property
    def unrouted(self) -> str:
        """The exchange and the queue of messages that no other queue
        accepts.
        """
        return f'{self.front}.unrouted'


def declare(channel: Any, places: Places) -> None:
    """Declare all objects; existing objects remain unchanged.

    :param channel: AMQP channel.
    :raises Exception: error of the channel, if an object exists with other
        properties.
    """
    unrouted = places.unrouted
    _exchange(channel, unrouted, 'fanout')
    channel.queue_declare(unrouted, durable=True, auto_delete=False)
    channel.queue_bind(unrouted, unrouted)
    _exchange(channel, places.target, 'topic', durable=places.target_durable)
    _exchange(
        channel,
        places.routes,
        'topic',
        arguments={'alternate-exchange': unrouted},
    )
    if places.holds:
        _declare_waiting(channel, places)
    else:
        channel.exchange_bind(places.target, places.routes, places.sorted_key)
    for key in places.passing:
        channel.exchange_bind(places.target, places.routes, key)
    # Last: all queues exist before nova-api can send.
    _exchange(channel, places.front, 'topic')
    channel.exchange_bind(places.routes, places.front, '#')


def remove(channel: Any, places: Places) -> None:
    """Remove the objects of the relay; Nova's own exchange remains.

    :param channel: AMQP channel.
    :raises Exception: error of the channel, if a queue has messages or a
        consumer.
    """
    waiting = [places.conductor, places.held] if places.holds else []
    # The last queue takes messages that nova-api sends after the others are
    # gone.
    for queue in (*waiting, places.unrouted):
        channel.queue_delete(queue, if_unused=True, if_empty=True)
    for name in (places.front, places.routes, places.unrouted):
        channel.exchange_delete(name)
    if places.holds:
        channel.exchange_delete(places.held)


def _declare_waiting(channel: Any, places: Places) -> None:
    """Declare the queues that route messages to conductor through the
    relay.
    """
    _exchange(channel, places.held, 'topic')
    channel.queue_declare(places.held, durable=True, auto_delete=False)
    channel.queue_bind(places.held, places.held, '#')
    # Only one relay consumes, so that messages stay in order; others stand by.
    channel.queue_declare(
        places.conductor,
        durable=True,
        auto_delete=False,
        arguments={'x-single-active-consumer': True},
    )
    channel.queue_bind(places.conductor, places.routes, places.sorted_key)


def _exchange(
    channel: Any,
    name: str,
    kind: str,
    durable: bool = True,
    arguments: dict[str, Any] | None = None,
) -> None:
    channel.exchange_declare(
        name, kind, durable=durable, auto_delete=False, arguments=arguments
    )
