# SPDX-License-Identifier: Apache-2.0

"""The jobs between nova-api and conductor: builds wait, other messages pass.

Each of three jobs has a connection and a thread of its own, so that a store
that does not answer holds up only the messages that are to wait:

:class:`Sorter` reads the messages to conductor. It puts casts that are to wait
    into a queue of their own, and sends all other messages on, in order.
:class:`Keeper` takes messages from that queue into the store.
:class:`Watcher` logs messages that no queue takes.

A message is acknowledged after the broker has confirmed its copy, or the store
has it, so that no message is lost. If a relay dies, messages in between come
again: the store knows the messages that it has, and the servers of
oslo.messaging recognise recent messages by the same identity.
"""

import abc
import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import threading
import time
from typing import Protocol

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.model import cast as cast_module
from nova_fairness.relay import envelope
from nova_fairness.relay import link as link_module
from nova_fairness.relay import topology
from nova_fairness.runtime import outages
from nova_fairness.runtime import supervision

LOG = logging.getLogger(__name__)

HELD_METHODS = ('schedule_and_build_instances', 'unshelve_instance')
"""Methods whose casts need room, and may have to wait for it."""

Hold = Callable[[Sequence[cast_module.Cast]], Sequence[bool]]
"""Stores messages; when it returns, they are safe. The result is ``False`` for
messages that were already stored. It raises ``StoreAway`` if a later call may
succeed, and another ``StoreError`` if one of the messages cannot be stored.
"""

_HeldMessage = tuple[cast_module.Cast, link_module.Delivery, str]
"""A message, its delivery, and the names of its servers for the log."""

_NO_CONSUMER = (
    'no consumer for topic %s on exchange %s: the message is dropped'
)

_RECEIVE_S = 1.0
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0
_LEAVE_S = 10.0
"""Seconds to finish work that has begun; messages without an acknowledgement
are delivered again.
"""


OUTCOMES = (
    'passed',
    'held',
    'known',
    'unheld',
    'refused',
    'unreadable',
    'unroutable',
)
"""Outcomes of a message: forwarded; stored; already stored; forwarded because
the cluster service is down; forwarded because the store refused it; forwarded
because it could not be parsed; lost because no queue accepts it.
"""


class ThreadWork(Protocol):
    """Work that a thread executes until it is stopped."""

    @property
    def name(self) -> str:
        """The name of the thread."""

    def run(self) -> None:
        """Execute the work."""


class QueueJob(abc.ABC):
    """Job that processes every message of a queue until it is stopped.

    :param url: URL of the broker.
    :param places: names on the broker.
    :param stopped: event that ends the job.
    :ivar prefetch: number of messages that the broker delivers before they are
        acknowledged.
    :ivar counts: number of messages by outcome.
    :ivar beat: called in each turn of the job, with or without messages.
    """

    prefetch = 50

    def __init__(
        self, url: str, places: topology.Places, stopped: threading.Event
    ) -> None:
        self._url = url
        self._places = places
        self._stopped = stopped
        self._pause_s = _FIRST_PAUSE_S
        self._is_ready = False
        self.counts: collections.Counter[str] = collections.Counter()
        self.beat: supervision.Beat = lambda: None

    @property
    def name(self) -> str:
        """The name of the job's thread."""
        return self.queue

    @property
    @abc.abstractmethod
    def queue(self) -> str:
        """The queue from which the job receives messages."""

    def begin(self, link: link_module.Link) -> None:
        """Start to receive messages."""
        link.consume(self.queue, self.prefetch)

    @abc.abstractmethod
    def process(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Process one message; it is acknowledged after :meth:`settle`.

        :raises BrokerAway: if the broker does not answer.
        :raises StoreAway: if the store does not answer.
        """

    def settle(self, link: link_module.Link) -> None:
        """Wait until the broker has every forwarded message.

        A message that no queue accepts is lost, as it would be without the
        relay; this is logged.

        :raises BrokerAway: if the broker lost a message that has to wait.
        """
        for exchange, key in link.settle():
            if exchange == self._places.held:
                raise exception.BrokerAway(f'the queue {exchange} is gone')
            self.counts['unroutable'] += 1
            LOG.warning(_NO_CONSUMER, key, exchange)

    def run(self) -> None:
        """Process messages until stopped; connect again after a failure of a
        server.

        Any other error is raised: the caller starts the job again, and no
        message is lost.
        """
        while not self._stopped.is_set():
            self.beat()
            try:
                self._serve_connection()
            except (exception.BrokerAway, exception.StoreAway) as error:
                is_broker = isinstance(error, exception.BrokerAway)
                server = outages.BROKER if is_broker else outages.DATABASE
                outages.SERVERS.lost(server, error)
                LOG.debug('the queue %s waits: %s', self.queue, error)
                self._stopped.wait(self._pause_s)
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _serve_connection(self) -> None:
        link = link_module.Link(self._url, self._places)
        try:
            self.begin(link)
            if not self._is_ready:
                LOG.info('queue %s: ready: its messages are taken', self.queue)
            self._is_ready = True
            while not self._stopped.is_set():
                self.beat()
                came = link.receive(_RECEIVE_S)
                for delivery in came:
                    self.process_or_forward(link, delivery)
                self.settle(link)
                if came:
                    link.acknowledge(came[-1])
                    self._pause_s = _FIRST_PAUSE_S
        finally:
            # The broker gives messages without acknowledgement to the next
            # connection.
            link.close()

    def process_or_forward(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Process one message. An error with one message does not delay other
        messages.

        :raises BrokerAway: if the broker does not answer.
        :raises StoreAway: if the store does not answer.
        """
        try:
            self.process(link, delivery)
        except (exception.BrokerAway, exception.StoreAway):
            raise
        except Exception:
            self.counts['unreadable'] += 1
            LOG.exception(
                '%s failed on a message; it is forwarded to Nova at once',
                self.name,
            )
            self.forward_unchanged(link, delivery)

    def forward_unchanged(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Forward a message to its original destination."""

    def _held_cast(
        self, delivery: link_module.Delivery, methods: tuple[str, ...]
    ) -> envelope.HeldCast | None:
        """Return the cast of a message that has to wait; ``None`` if it cannot
        be parsed.
        """
        try:
            return envelope.cast_to_hold(delivery.body, methods)
        except exception.Unreadable as error:
            self.counts['unreadable'] += 1
            LOG.warning(
                'a message is unreadable; it is forwarded to Nova at once: %s',
                error,
            )
            return None


class Sorter(QueueJob):
    """Forwards messages to conductor, except casts that have to wait.

    :param methods: methods of these casts.
    :param is_open: returns whether these casts are forwarded, too; ``None``:
        never. If this function is given, a cast that the broker delivers again
        may have been forwarded before. Such a cast waits with a mark, and is
        sent only if Nova does not have it.
    """

    def __init__(
        self,
        url: str,
        places: topology.Places,
        stopped: threading.Event,
        methods: Collection[str] = HELD_METHODS,
        is_open: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(url, places, stopped)
        self._methods = tuple(methods)
        self._is_open = is_open

    @property
    def queue(self) -> str:
        """The queue of nova-api's messages to conductor."""
        return self._places.conductor

    def process(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Forward one message, or put it into the queue of held messages."""
        found = self._held_cast(delivery, self._methods)
        if not found:
            self.counts['passed'] += 1
            link.publish(self._places.target, delivery)
            return
        delivery = _without_reserved_hints(delivery, found)
        if self._is_open and self._is_open() and not delivery.again:
            self.counts['unheld'] += 1
            link.publish(self._places.target, delivery)
        else:
            link.publish(
                self._places.held, delivery, self._held_properties(delivery)
            )

    def forward_unchanged(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Forward a message unchanged."""
        link.publish(self._places.target, delivery)

    def _held_properties(
        self, delivery: link_module.Delivery
    ) -> dict[str, object]:
        """Return the properties of a message that has to wait."""
        kept: dict[str, object] = {'delivery_mode': link_module.PERSISTENT}
        if self._is_open and delivery.again:
            headers = delivery.properties.get('application_headers') or {}
            kept['application_headers'] = {**headers, cast_module.DOUBTFUL: 1}
        return kept


def _without_reserved_hints(
    delivery: link_module.Delivery, found: envelope.HeldCast
) -> link_module.Delivery:
    body, removed = envelope.without_reserved_hints(delivery.body)
    if not removed:
        return delivery
    LOG.warning(
        'message %s: server %s: scheduler hint %s removed: only Nova may set'
        ' it (CVE-2026-46448)',
        found.uuid,
        found.named,
        ', '.join(removed),
    )
    return dataclasses.replace(delivery, body=body)


class Keeper(QueueJob):
    """Stores casts that have to wait.

    :param hold: stores messages.
    :param clock: returns seconds of the epoch.
    """

    def __init__(
        self,
        url: str,
        places: topology.Places,
        stopped: threading.Event,
        hold: Hold,
        methods: Collection[str] = HELD_METHODS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(url, places, stopped)
        self._hold = hold
        self._came: list[_HeldMessage] = []
        self._methods = tuple(methods)
        self._clock = clock

    @property
    def queue(self) -> str:
        """The queue of messages that are to be stored."""
        return self._places.held

    def process(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Accept one message; :meth:`settle` stores it."""
        found = self._held_cast(delivery, self._methods)
        if not found:
            link.publish(self._places.target, delivery)
            return
        cast = cast_module.Cast(
            uuid=found.uuid,
            method=found.method,
            received_at=self._clock(),
            key=delivery.key,
            body=delivery.body,
            properties=dict(delivery.properties),
        )
        self._came.append((cast, delivery, found.named))

    def forward_unchanged(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Forward a message: an immediate start is better than no start."""
        link.publish(self._places.target, delivery)

    def settle(self, link: link_module.Link) -> None:
        """Store new messages, with one write to the disk if possible."""
        # Messages that are not stored now come again, on another connection.
        came, self._came = self._came, []
        try:
            self._store(came)
        except exception.StoreAway:
            raise
        except Exception:  # noqa: BLE001 - each is tried alone, and told of
            refused = [each for each in came if self._is_refused(each)]
            # Only now: if the store had failed before, all messages would come
            # again.
            for _, delivery, _ in refused:
                self.counts['refused'] += 1
                link.publish(self._places.target, delivery)
        super().settle(link)

    def _serve_connection(self) -> None:
        # Messages of an earlier connection come again.
        self._came = []
        super()._serve_connection()

    def _store(self, came: list[_HeldMessage]) -> None:
        if not came:
            return
        stored = self._hold([cast for cast, *_ in came])
        for (cast, _, named), new in zip(came, stored, strict=True):
            said = 'waits' if new else 'came before'
            self.counts['held' if new else 'known'] += 1
            LOG.info('message %s %s: server %s', cast.uuid, said, named)

    def _is_refused(self, came: _HeldMessage) -> bool:
        """Store one message alone; return whether the store refused it."""
        cast, _, named = came
        try:
            self._store([came])
        except exception.StoreAway:
            raise
        except exception.StoreError as error:
            LOG.error(
                'message %s starts at once: server %s: %s',
                cast.uuid,
                named,
                error,
            )
            return True
        except Exception:
            LOG.exception(
                'message %s starts at once: server %s', cast.uuid, named
            )
            return True
        return False


class Watcher(QueueJob):
    """Logs messages that no queue accepts."""

    @property
    def queue(self) -> str:
        """The queue of messages that no other queue accepts."""
        return self._places.unrouted

    def process(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Log the topic of a message that no consumer receives."""
        self.counts['unroutable'] += 1
        LOG.warning(_NO_CONSUMER, delivery.key, self._places.front)


def of_broker(
    url: str,
    places: topology.Places,
    stopped: threading.Event,
    hold: Hold,
    is_open: Callable[[], bool] | None = None,
) -> list[QueueJob]:
    """Create the jobs for one broker.

    :param hold: stores messages that have to wait.
    :param is_open: returns whether such messages are forwarded; ``None``:
        never.
    """
    watcher = Watcher(url, places, stopped)
    if not places.holds:
        return [watcher]
    return [
        Sorter(url, places, stopped, is_open=is_open),
        Keeper(url, places, stopped, hold),
        watcher,
    ]


def count_outcomes(jobs: Sequence[QueueJob]) -> Mapping[str, int]:
    """Return the number of messages by outcome; see :data:`OUTCOMES`."""
    total = collections.Counter(dict.fromkeys(OUTCOMES, 0))
    for each in jobs:
        total.update(each.counts)
    return total


@contextlib.contextmanager
def running(
    jobs: Sequence[ThreadWork], stopped: threading.Event
) -> Iterator[None]:
    """Run jobs during a ``with`` block, each in a thread; restart failed jobs.

    :param stopped: event that ends the jobs; it is set at the end of the
        block.
    """
    threads = [
        threading.Thread(
            target=_run_forever,
            args=(job, stopped),
            name=job.name,
            daemon=True,
        )
        for job in jobs
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        end_s = time.monotonic() + _LEAVE_S
        for thread in threads:
            thread.join(max(end_s - time.monotonic(), 0))


def _run_forever(job: ThreadWork, stopped: threading.Event) -> None:
    while not stopped.is_set():
        try:
            job.run()
        except Exception:
            LOG.exception('%s failed and starts again', job.name)
            stopped.wait(_LONGEST_PAUSE_S)
