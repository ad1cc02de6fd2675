# SPDX-License-Identifier: Apache-2.0

"""Where messages go on the broker, and what is declared there for it.

::

    nova-api -> FRONT -> FRONT.routes --(other services)----> TARGET -> Nova
                           |--(conductor.#)--> FRONT.conductor --relay--^
                           |                         `--> FRONT.held --> store
                           `--(others)--> FRONT.unrouted

Everything that is ours is durable: it is there before the relay is, and after
the broker came back. FRONT itself is as nova-api declares it with
``amqp_durable_queues``, which the broker compares; therefore all special rules
are in an exchange behind it.

Messages that have to wait go to the broker that nova-api itself is configured
with. On the brokers of further cells everything leads from FRONT.routes to
TARGET.
"""

import dataclasses
from typing import Any

from nova_fairness import exception


@dataclasses.dataclass(frozen=True)
class Places:
    """Names on the broker.

    :ivar front: exchange that nova-api sends to.
    :ivar target: exchange that the other services of Nova listen to.
    :ivar target_durable: how Nova declares it (``amqp_durable_queues``).
    :ivar passing: topics that go on without the relay.
    :ivar sorted_key: topic that the relay looks through.
    :ivar holds: ``False`` on the broker of a further cell: nothing waits.
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
        """The exchange that knows where messages go."""
        return f'{self.front}.routes'

    @property
    def conductor(self) -> str:
        """The queue of what the relay looks through."""
        return f'{self.front}.conductor'

    @property
    def held(self) -> str:
        """The exchange and the queue of messages that are to be stored."""
        return f'{self.front}.held'

    @property
    def unrouted(self) -> str:
        """The exchange and the queue of messages that no other queue takes."""
        return f'{self.front}.unrouted'


def declare(channel: Any, places: Places) -> None:
    """Make sure that everything is there; existing objects stay as they are.

    :param channel: of AMQP.
    :raises Exception: those of the channel, if an object was declared
        otherwise.
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
    # Last: what nova-api sends from now on finds everything in its place.
    _exchange(channel, places.front, 'topic')
    channel.exchange_bind(places.routes, places.front, '#')


def remove(channel: Any, places: Places) -> None:
    """Remove our objects; Nova's own exchange stays.

    :param channel: of AMQP.
    :raises Exception: those of the channel, if a queue holds messages or has a
        consumer.
    """
    waiting = [places.conductor, places.held] if places.holds else []
    # The last one takes what nova-api sends after the others are gone.
    for queue in (*waiting, places.unrouted):
        channel.queue_delete(queue, if_unused=True, if_empty=True)
    for name in (places.front, places.routes, places.unrouted):
        channel.exchange_delete(name)
    if places.holds:
        channel.exchange_delete(places.held)


def _declare_waiting(channel: Any, places: Places) -> None:
    """Make sure that what goes to conductor passes the relay."""
    _exchange(channel, places.held, 'topic')
    channel.queue_declare(places.held, durable=True, auto_delete=False)
    channel.queue_bind(places.held, places.held, '#')
    # One relay at a time, so that messages stay in order; the others stand by.
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
