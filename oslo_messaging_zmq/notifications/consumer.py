# SPDX-License-Identifier: Apache-2.0

"""One consumer of a pool: reads entries, and reports their outcomes."""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import logging
import os
import socket
import threading
import time
from typing import Any
import uuid

import redis

from oslo_messaging_zmq.notifications import store
from oslo_messaging_zmq.redis import client
from oslo_messaging_zmq.redis import url

LOG = logging.getLogger(__name__)

MOST_DELIVERIES = 10
"""Number of deliveries after which a notification is dropped, because its
consumers died."""

MOST_CLAIMED = 100
"""Largest number of dead consumers' entries that are claimed at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """Common parameters of all listeners and senders of one transport.

    :param settings: of the connection to Redis.
    :param prefix: of every key in Redis.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    :param lease_s: seconds without a sign of life after which a consumer
        counts as dead.
    :param most_open: largest number of unacknowledged notifications of one
        listener.
    :param max_message_size: largest size of a notification, bytes.
    """

    settings: url.RedisSettings
    prefix: str
    timeout_s: float
    lease_s: float
    most_open: int
    max_message_size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A notification that is not acknowledged yet."""

    entry: store.StreamEntry
    ctxt: dict[str, Any]
    message: dict[str, Any]


class ConsumerCounters:
    """Thread-safe counters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Increase one counter."""
        with self._lock:
            self._counts[name] += count

    def read(self) -> Mapping[str, int]:
        """Return all counters that were ever increased."""
        with self._lock:
            return dict(self._counts)


class OpenEntries:
    """Unacknowledged entries of one listener, and outcomes that Redis lacks.

    :param terms: common parameters.
    :param group: of the pool.
    :param answers: connection of the threads that report outcomes.
    """

    def __init__(
        self,
        terms: ConsumerTerms,
        group: str,
        answers: store.NotificationStore,
    ) -> None:
        self._terms = terms
        self._group = group
        self._answers = answers
        self._lock = threading.Lock()
        self._open: set[tuple[str, str]] = set()
        self._unreported: dict[tuple[str, str], bytes | None] = {}
        self._has_room = threading.Event()

    @property
    def room(self) -> int:
        """The number of entries that may still be read."""
        return self._terms.most_open - len(self._open)

    def wait_for_room(self, patience_s: float) -> None:
        """Wait until an outcome was reported, or :meth:`wake` is called."""
        self._has_room.wait(patience_s)
        self._has_room.clear()

    def wake(self) -> None:
        """End a wait of :meth:`wait_for_room`."""
        self._has_room.set()

    def take(self, entry: store.StreamEntry) -> bool:
        """Record an entry as open.

        :returns: ``False`` if it is open already.
        """
        key = entry.stream, entry.id
        with self._lock:
            is_new = key not in self._open
            self._open.add(key)
        return is_new

    def settle(self, entry: store.StreamEntry, body: bytes | None) -> None:
        """Report the outcome of an entry, now or when Redis answers again.

        :param body: content to requeue; ``None`` if the entry is processed.
        """
        key = entry.stream, entry.id
        try:
            self._report_outcome(self._answers, key, body)
        except client.FAILURES as error:
            self._unreported[key] = body
            LOG.warning(
                'Redis did not get the outcome of %s of %s, will retry: %s',
                entry.id,
                entry.stream,
                client.explain(error, self._terms.settings),
            )

    def send_owed(self, connection: store.NotificationStore) -> None:
        """Send Redis the outcomes that could not be sent before.

        :raises redis.RedisError: if Redis still does not answer.
        """
        for key, body in list(self._unreported.items()):
            try:
                self._report_outcome(connection, key, body)
            except redis.ResponseError as error:
                if not client.concerns_one_key(error):
                    raise
                # Its stream was deleted; the other outcomes are still sent.
                LOG.error('Cannot settle %s of %s: %s', key[1], key[0], error)
                self._close_account(key)
            self._unreported.pop(key, None)

    def _report_outcome(
        self,
        connection: store.NotificationStore,
        key: tuple[str, str],
        body: bytes | None,
    ) -> None:
        stream, entry_id = key
        if body is None:
            connection.finish(stream, self._group, entry_id)
        else:
            connection.requeue(stream, self._group, entry_id, body)
        self._close_account(key)

    def _close_account(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._open.discard(key)
        self._has_room.set()


class Consumer:
    """Reads the notifications of one pool; only one thread may do so.

    :param terms: common parameters.
    :param streams: keys of the streams.
    :param group: of the pool.
    :param answers: connection on which other threads acknowledge.
    :param tally: counters.
    """

    PATIENCE_S = 1.0

    def __init__(
        self,
        terms: ConsumerTerms,
        streams: Sequence[str],
        group: str,
        answers: store.NotificationStore,
        tally: ConsumerCounters,
    ) -> None:
        self._terms = terms
        self._streams = tuple(streams)
        self._group = group
        self._answers = answers
        self._tally = tally
        self.name = (
            f'{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}'
        )
        self.most_open = terms.most_open
        self._outage = client.Outage(terms.settings, LOG, 'notifications')
        self._silence = client.Outage(
            terms.settings, LOG, 'signs of life of listeners to notifications'
        )
        self._accounts = OpenEntries(terms, group, answers)
        self._usable: tuple[str, ...] = ()
        self._refused: set[str] = set()
        self._connection: store.NotificationStore | None = None
        self._client_id = 0
        self._was_read_again = True
        self._renew_s = 0.0
        self._claim_s = 0.0

    def subscribe(self, connection: store.NotificationStore) -> None:
        """Create the pool's group in every stream where it is missing.

        A stream whose key has a foreign value is left out.
        """
        usable = []
        for stream in self._streams:
            try:
                connection.subscribe(stream, self._group)
                usable.append(stream)
            except redis.ResponseError as error:
                if not client.concerns_one_key(error):
                    raise
                if stream not in self._refused:
                    self._refused.add(stream)
                    self._tally.add('refused')
                    LOG.error('Cannot use %s as a stream: %s', stream, error)
        self._usable = tuple(usable)

    def take(self, wanted: int, patience_s: float) -> list[Taken]:
        """Read notifications, waiting for the first.

        :param wanted: largest number per stream.
        :param patience_s: longest wait in seconds.
        :raises redis.RedisError: if Redis does not answer, or was flushed.
        """
        connection = self._connected()
        entries = self._maintain(connection)
        if entries:
            return self._accept_entries(entries)
        room = self._accounts.room
        if room <= 0 or not self._usable:
            self._accounts.wait_for_room(patience_s)
            return []
        entries = connection.read(
            self._usable,
            self._group,
            self.name,
            max(1, min(wanted, room)),
            patience_s,
        )
        self._outage.worked()
        return self._accept_entries(entries)

    def upkeep(self) -> None:
        """Renew the lease without reading."""
        connection = self._connected()
        self._accounts.send_owed(connection)
        self._renew(connection)
        self._outage.worked()

    def failed(self, error: Exception) -> float:
        """Record a failure of take() or upkeep().

        :returns: seconds until the next attempt.
        """
        self.close()
        self._was_read_again = False
        if _is_group_gone(error):
            self._tally.add('lost_streams')
            return 0.0
        return self._outage.failed(error)

    def acknowledge(self, taken: Taken) -> None:
        """Acknowledge a processed notification; never raises."""
        self._accounts.settle(taken.entry, None)
        self._tally.add('acknowledged')

    def requeue(self, taken: Taken) -> None:
        """Append a notification to the waiting ones again; never raises."""
        self._accounts.settle(taken.entry, taken.entry.fields[b'body'])
        self._tally.add('requeued')

    def interrupt(self) -> None:
        """End a present wait of take()."""
        self._accounts.wake()
        if self._client_id and not self._outage.lasts:
            try:
                self._answers.unblock(self._client_id)
            except client.FAILURES:
                self._client_id = 0

    def leave(self) -> None:
        """Delete the consumer.

        :raises redis.RedisError: if Redis does not answer.
        """
        if self._connection is not None:
            self._accounts.send_owed(self._connection)
            self._connection.leave(self._usable, self._group, self.name)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> store.NotificationStore:
        if self._connection is not None:
            return self._connection
        terms = self._terms
        connection = store.NotificationStore(
            client.connect(
                terms.settings, timeout_s=terms.timeout_s + self.PATIENCE_S
            ),
            terms.prefix,
            lambda _: self._tally.add('replaced'),
        )
        try:
            self._renew_lease(connection)
            self.subscribe(connection)
            self._client_id = connection.client_id()
        except client.FAILURES:
            connection.close()
            raise
        now_s = time.monotonic()
        # After an outage the others' names may have expired though they live.
        later_s = terms.lease_s if self._outage.count else 0
        self._claim_s = max(self._claim_s, now_s + later_s)
        self._connection = connection
        return connection

    def _maintain(
        self, connection: store.NotificationStore
    ) -> list[store.StreamEntry]:
        self._accounts.send_owed(connection)
        self._renew(connection)
        if not self._was_read_again:
            self._was_read_again = True
            if self._usable:
                return connection.read_again(
                    self._usable, self._group, self.name
                )
        if time.monotonic() < self._claim_s:
            return []
        self._claim_s = time.monotonic() + self._terms.lease_s / 2
        if len(self._usable) < len(self._streams):
            self.subscribe(connection)
        claimed: list[store.StreamEntry] = []
        for stream in self._usable:
            claimed += connection.claim(
                stream,
                self._group,
                self.name,
                self._terms.lease_s,
                MOST_CLAIMED,
            )
        self._tally.add('claimed', len(claimed))
        return claimed

    def _renew(self, connection: store.NotificationStore) -> None:
        if time.monotonic() >= self._renew_s:
            self._renew_lease(connection)

    def _renew_lease(self, connection: store.NotificationStore) -> None:
        """Renew this consumer's sign of life.

        A full Redis refuses it but still returns notifications. Then other
        consumers cannot renew theirs either, so none counts as dead until all
        had time to.
        """
        lease_s = self._terms.lease_s
        wait_s = lease_s / 3
        try:
            connection.keep_alive(self.name, lease_s)
            self._silence.worked()
        except redis.exceptions.OutOfMemoryError as error:
            wait_s = min(wait_s, self._silence.failed(error))
            self._claim_s = time.monotonic() + lease_s
        self._renew_s = time.monotonic() + wait_s

    def _accept_entries(
        self, entries: Iterable[store.StreamEntry]
    ) -> list[Taken]:
        accepted = []
        for entry in entries:
            if self._accounts.take(entry):
                taken = self._decode_entry(entry)
                if taken is None:
                    self._accounts.settle(entry, None)
                else:
                    accepted.append(taken)
        self._tally.add('received', len(accepted))
        return accepted

    def _decode_entry(self, entry: store.StreamEntry) -> Taken | None:
        """Decode an entry; return ``None`` for one of another group or an
        empty one.
        """
        addressee = entry.fields.get(b'group', self._group.encode())
        if not entry.fields or addressee != self._group.encode():
            return None
        try:
            body = store.checked_body(entry, MOST_DELIVERIES)
            return Taken(
                entry,
                *store.decode(body, self._terms.max_message_size),
            )
        except store.BadNotification as error:
            self._tally.add('garbage')
            LOG.warning('Dropped %s of %s: %s', entry.id, entry.stream, error)
            return None


def _is_group_gone(error: Exception) -> bool:
    """Check whether the group vanished: Redis was flushed, or the group
    deleted.
    """
    words = str(error)
    return any(word in words for word in ('NOGROUP', 'UNBLOCKED', 'no such k'))
