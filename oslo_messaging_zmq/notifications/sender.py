# SPDX-License-Identifier: Apache-2.0

"""Notifications, stored in Redis Streams until their listeners processed them.

Every pool gets one copy of a notification, and so do all listeners without a
pool together. One listener of a pool gets it, and another one if the first
died. So it may be delivered twice, and is delivered at least once unless a
full topic lost it.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import logging
import threading
import time
from typing import Any
import uuid

import oslo_messaging

from oslo_messaging_zmq.notifications import consumer
from oslo_messaging_zmq.notifications import listener
from oslo_messaging_zmq.notifications import store
from oslo_messaging_zmq.redis import client
from oslo_messaging_zmq.redis import url

LOG = logging.getLogger(__name__)

COUNTERS = (
    'sent',
    'received',
    'acknowledged',
    'requeued',
    'claimed',
    'retried',
    'dropped_oldest',
    'garbage',
    'refused',
    'replaced',
    'lost_streams',
)
"""Counters of :meth:`RedisNotifications.statistics`: notifications stored
in Redis; received here; acknowledged; requeued; claimed from dead
consumers; repeated attempts to send; lost by full topics; unreadable
entries; refused streams; keys with a value of a wrong type that was
removed; vanished groups."""

_CONNECTIONS = 16
_LOG_INTERVAL_S = 60.0


@dataclasses.dataclass(slots=True)
class _SendLane:
    """A sequence of messages that are sent one after another.

    Redis stores the last number of each lane, so that a message that is sent
    again after a lost answer is not stored twice.
    """

    name: str
    sequence: int = 0


class RedisNotifications:
    """Sends notifications and creates listeners, for one process.

    :param settings: of the connection to Redis.
    :param prefix: of every key in Redis.
    :param max_length: largest number of notifications of a topic.
    :param max_message_size: largest size of a notification, bytes.
    :param most_open: largest number of unacknowledged notifications of a
        listener.
    :param lease_s: seconds of silence after which a listener counts as dead.
    :param retry_delay_s: seconds between two attempts to send.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    """

    def __init__(
        self,
        settings: url.RedisSettings,
        *,
        prefix: str = 'oslo_messaging_zmq',
        max_length: int = 10000,
        max_message_size: int = 8 * 2**20,
        most_open: int = 64,
        lease_s: float = 30.0,
        retry_delay_s: float = 1.0,
        timeout_s: float = 5.0,
    ) -> None:
        self._terms = consumer.ConsumerTerms(
            settings=settings,
            prefix=prefix,
            timeout_s=timeout_s,
            lease_s=lease_s,
            most_open=most_open,
            max_message_size=max_message_size,
        )
        self._max_length = max_length
        self._retry_delay_s = retry_delay_s
        self._tally = consumer.ConsumerCounters()
        self._outage = client.Outage(settings, LOG, 'sending of notifications')
        self._lanes: collections.deque[_SendLane] = collections.deque()
        self._is_closing = threading.Event()
        self._was_admitted = False
        self._said_s = -_LOG_INTERVAL_S
        self._store = store.NotificationStore(
            client.connect(
                settings, timeout_s=timeout_s, connections=_CONNECTIONS
            ),
            prefix,
            lambda _: self._tally.add('replaced'),
        )

    def send(
        self,
        exchange: str,
        topic: str,
        ctxt: Mapping[str, Any],
        message: Mapping[str, Any],
        retry: int | None = None,
    ) -> None:
        """Store a notification; returns when Redis has it.

        :param exchange: name space of the topic.
        :param topic: with its priority.
        :param ctxt: context of the sender.
        :param message: content.
        :param retry: number of further attempts, a second apart, while Redis
            does not answer; ``None`` or -1 means no limit.
        :raises oslo_messaging.MessageDeliveryFailure: if Redis did not store
            it.
        """
        body = store.encode(ctxt, message)
        limit = self._terms.max_message_size
        if len(body) > limit:
            raise oslo_messaging.MessageDeliveryFailure(
                f'A notification to {topic} has {len(body)} bytes; expected'
                f' at most {limit}'
            )
        stream = self._store.stream(exchange, topic)
        lane = self._get_lane()
        lane.sequence += 1
        try:
            self._send(stream, lane, body, -1 if retry is None else retry)
        finally:
            self._lanes.append(lane)
        self._tally.add('sent')

    def listener(
        self,
        targets: Iterable[tuple[str, str]],
        pool: str | None,
        batch_size: int | None,
        batch_timeout: float | None,
    ) -> listener.NotificationListener:
        """Create a listener, and its pool if it is new.

        From now on notifications reach the pool, also before the listener
        starts. A new pool also gets those that listeners without a pool have
        not received yet.

        :param targets: exchanges, and topics with their priorities.
        :param pool: its name; ``None`` or empty for none.
        :param batch_size: notifications per call of the callback.
        :param batch_timeout: longest wait of a batch's first notification, in
            seconds.
        """
        streams = sorted({self._store.stream(*target) for target in targets})
        group = f'pool:{pool}' if pool else store.DEFAULT_GROUP
        most_open = max(self._terms.most_open, 2 * (batch_size or 1))
        made = consumer.Consumer(
            dataclasses.replace(self._terms, most_open=most_open),
            streams,
            group,
            self._store,
            self._tally,
        )
        try:
            made.subscribe(self._store)
        except client.FAILURES as error:
            LOG.warning(
                'Cannot listen to notifications yet, will retry: %s',
                client.explain(error, self._terms.settings),
            )
        return listener.NotificationListener(made, batch_size, batch_timeout)

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name, see :data:`COUNTERS`, and outages
        while sending.
        """
        counted = self._tally.read()
        return {name: counted.get(name, 0) for name in COUNTERS} | {
            'outages': self._outage.count
        }

    def cleanup(self) -> None:
        """Abort sending, and close the connections."""
        self._is_closing.set()
        self._store.close()

    def _get_lane(self) -> _SendLane:
        try:
            return self._lanes.pop()
        except IndexError:
            return _SendLane(uuid.uuid4().hex)

    def _send(
        self, stream: str, lane: _SendLane, body: bytes, retries: int
    ) -> None:
        attempt = 0
        while True:
            try:
                dropped = self._store.send(
                    stream,
                    lane.name,
                    lane.sequence,
                    body,
                    self._max_length,
                )
            except client.FAILURES as error:
                if not self._may_retry(error, attempt, retries):
                    raise oslo_messaging.MessageDeliveryFailure(
                        f'A notification could not be sent to {stream}:'
                        f' {client.explain(error, self._terms.settings)}'
                    ) from None
                attempt += 1
            else:
                self._was_admitted = True
                self._outage.worked()
                self._note_dropped(stream, dropped)
                return

    def _may_retry(self, error: Exception, attempt: int, retries: int) -> bool:
        """Wait for the next attempt; return ``False`` if there must be
        none.
        """
        # A password that never opened is a fault of the configuration; one
        # that opened before was changed, and may be changed back.
        is_final = client.concerns_one_key(error) or (
            client.is_password(error) and not self._was_admitted
        )
        if is_final or (0 <= retries <= attempt):
            return False
        self._outage.failed(error)
        self._tally.add('retried')
        return not self._is_closing.wait(self._retry_delay_s)

    def _note_dropped(self, stream: str, dropped: int) -> None:
        if not dropped:
            return
        self._tally.add('dropped_oldest', dropped)
        now_s = time.monotonic()
        if now_s - self._said_s >= _LOG_INTERVAL_S:
            self._said_s = now_s
            LOG.warning(
                '%s holds %d notifications and lost its oldest %d: one of'
                ' its pools has no listener, or too slow ones',
                stream,
                self._max_length,
                dropped,
            )
