# SPDX-License-Identifier: Apache-2.0

"""One consumer of a pool: takes entries, and reports their outcomes."""

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
"""A notification whose consumers died this often is not given out again."""

MOST_CLAIMED = 100
"""Entries of the dead taken over in one go."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """Common terms of all listeners and senders of one transport.

    :param settings: where Redis is.
    :param prefix: with which every key in Redis begins.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    :param lease_s: a consumer that Redis did not hear of for so long is
        dead, seconds.
    :param most_open: how many notifications one listener takes at most that
        it has not acknowledged yet.
    :param max_message_size: longest notification, bytes.
    """

    settings: url.RedisSettings
    prefix: str
    timeout_s: float
    lease_s: float
    most_open: int
    max_message_size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A notification that is open."""

    entry: store.StreamEntry
    ctxt: dict[str, Any]
    message: dict[str, Any]


class ConsumerCounters:
    """Counters that any thread may increase."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Increase one counter."""
        with self._lock:
            self._counts[name] += count

    def read(self) -> Mapping[str, int]:
        """All counters that were increased ever."""
        with self._lock:
            return dict(self._counts)


class OpenEntries:
    """Open entries of one listener, and what Redis has not heard yet.

    :param terms: what is common.
    :param group: of the pool.
    :param answers: connection of the threads that settle.
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
        self._owed: dict[tuple[str, str], bytes | None] = {}
        self._has_room = threading.Event()

    @property
    def room(self) -> int:
        """How many more may be taken."""
        return self._terms.most_open - len(self._open)

    def wait_for_room(self, patience_s: float) -> None:
        """Wait until something is settled, or wake() is called."""
        self._has_room.wait(patience_s)
        self._has_room.clear()

    def wake(self) -> None:
        """End wait_for_room()."""
        self._has_room.set()

    def take(self, entry: store.StreamEntry) -> bool:
        """Take note of an entry.

        :returns: False when it is open already.
        """
        key = entry.stream, entry.id
        with self._lock:
            is_new = key not in self._open
            self._open.add(key)
        return is_new

    def settle(self, entry: store.StreamEntry, body: bytes | None) -> None:
        """Report the outcome of an entry, now or as soon as Redis hears it.

        :param body: what to give to the pool again; None when all is done.
        """
        key = entry.stream, entry.id
        try:
            self._say(self._answers, key, body)
        except client.FAILURES as error:
            self._owed[key] = body
            LOG.warning(
                'Redis gets the outcome of %s of %s later: %s',
                entry.id,
                entry.stream,
                client.explain(error, self._terms.settings),
            )

    def send_owed(self, connection: store.NotificationStore) -> None:
        """Send Redis the outcomes that could not be sent before.

        :raises redis.RedisError: if Redis is still away.
        """
        for key, body in list(self._owed.items()):
            try:
                self._say(connection, key, body)
            except redis.ResponseError as error:
                if not client.concerns_one_key(error):
                    raise
                # Its stream is no more; the others shall go on.
                LOG.error('Cannot settle %s of %s: %s', key[1], key[0], error)
                self._close_account(key)
            self._owed.pop(key, None)

    def _say(
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
    """Takes what one pool is to get; only one thread may do so.

    :param terms: what is common.
    :param streams: keys of the streams.
    :param group: of the pool.
    :param answers: connection on which other threads acknowledge.
    :param tally: where everything is counted.
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
        """Make sure that our group exists in every stream.

        A stream whose key holds a foreign value is left out.
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
        """Take notifications, waiting for the first.

        :param wanted: most of each stream.
        :param patience_s: longest wait in seconds.
        :raises redis.RedisError: Redis is away, or was flushed.
        """
        connection = self._connected()
        entries = self._upkeep(connection)
        if entries:
            return self._accepted(entries)
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
        return self._accepted(entries)

    def upkeep(self) -> None:
        """Go on living, without taking anything."""
        connection = self._connected()
        self._accounts.send_owed(connection)
        self._renew(connection)
        self._outage.worked()

    def failed(self, error: Exception) -> float:
        """Take note of a failure of take() or upkeep().

        :returns: how long to wait before the next attempt, in seconds.
        """
        self.close()
        self._was_read_again = False
        if _is_lost(error):
            self._tally.add('lost_streams')
            return 0.0
        return self._outage.failed(error)

    def acknowledge(self, taken: Taken) -> None:
        """Say that we are done with a notification; never raises."""
        self._accounts.settle(taken.entry, None)
        self._tally.add('acknowledged')

    def requeue(self, taken: Taken) -> None:
        """Put a notification behind all that wait; never raises."""
        self._accounts.settle(taken.entry, taken.entry.fields[b'body'])
        self._tally.add('requeued')

    def interrupt(self) -> None:
        """End the wait in take(), if it waits."""
        self._accounts.wake()
        if self._client_id and not self._outage.lasts:
            try:
                self._answers.unblock(self._client_id)
            except client.FAILURES:
                self._client_id = 0

    def leave(self) -> None:
        """Be no consumer any more.

        :raises redis.RedisError: Redis is away.
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
            self._say_alive(connection)
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

    def _upkeep(
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
            self._say_alive(connection)

    def _say_alive(self, connection: store.NotificationStore) -> None:
        """Say that we live.

        A Redis that is full, perhaps of notifications, refuses it and still
        lets us take them. Then others cannot say it either, so no consumer is
        taken for dead until all had the time to.
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

    def _accepted(self, entries: Iterable[store.StreamEntry]) -> list[Taken]:
        accepted = []
        for entry in entries:
            if self._accounts.take(entry):
                taken = self._opened(entry)
                if taken is None:
                    self._accounts.settle(entry, None)
                else:
                    accepted.append(taken)
        self._tally.add('received', len(accepted))
        return accepted

    def _opened(self, entry: store.StreamEntry) -> Taken | None:
        """Read an entry; None for one that is not for us, or is empty."""
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


def _is_lost(error: Exception) -> bool:
    """Whether our group is gone: Redis was flushed, or the group removed."""
    words = str(error)
    return any(word in words for word in ('NOGROUP', 'UNBLOCKED', 'no such k'))
