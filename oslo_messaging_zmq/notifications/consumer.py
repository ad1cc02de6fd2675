# SPDX-License-Identifier: Apache-2.0

"""One consumer of a pool: takes entries, and says what became of them."""

from collections.abc import Iterable
from collections.abc import Sequence
import logging
import os
import socket
import time
import uuid

import redis

from oslo_messaging_zmq.notifications import notification_accounts
from oslo_messaging_zmq.notifications import store as notification_store
from oslo_messaging_zmq.notifications import terms as notification_terms
from oslo_messaging_zmq.redis import client

LOG = logging.getLogger(__name__)

MOST_DELIVERIES = 10
"""A notification whose consumers died so often is given to nobody again."""

MOST_CLAIMED = 100
"""Entries of the dead taken over in one go."""


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
        terms: notification_terms.Terms,
        streams: Sequence[str],
        group: str,
        answers: notification_store.Store,
        tally: notification_terms.Tally,
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
        self._accounts = notification_accounts.Accounts(terms, group, answers)
        self._usable: tuple[str, ...] = ()
        self._refused: set[str] = set()
        self._store: notification_store.Store | None = None
        self._client_id = 0
        self._was_read_again = True
        self._renew_s = 0.0
        self._claim_s = 0.0

    def subscribe(self, store: notification_store.Store) -> None:
        """Make sure that our group exists in every stream.

        A stream whose key holds something of somebody else is left out.
        """
        usable = []
        for stream in self._streams:
            try:
                store.subscribe(stream, self._group)
                usable.append(stream)
            except redis.ResponseError as error:
                if client.is_general(error):
                    raise
                if stream not in self._refused:
                    self._refused.add(stream)
                    self._tally.add('refused')
                    LOG.error('Cannot use %s as a stream: %s', stream, error)
        self._usable = tuple(usable)

    def take(
        self, wanted: int, patience_s: float
    ) -> list[notification_terms.Taken]:
        """Take notifications, waiting for the first.

        :param wanted: most of each stream.
        :param patience_s: longest wait in seconds.
        :raises redis.RedisError: Redis is away, or was flushed.
        """
        store = self._connected()
        entries = self._upkeep(store)
        if entries:
            return self._accepted(entries)
        room = self._accounts.room
        if room <= 0 or not self._usable:
            self._accounts.wait_for_room(patience_s)
            return []
        entries = store.read(
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
        store = self._connected()
        self._accounts.repay(store)
        self._renew(store)
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

    def acknowledge(self, taken: notification_terms.Taken) -> None:
        """Say that we are done with a notification; never raises."""
        self._accounts.settle(taken.entry, None)
        self._tally.add('acknowledged')

    def requeue(self, taken: notification_terms.Taken) -> None:
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
        if self._store is not None:
            self._accounts.repay(self._store)
            self._store.leave(self._usable, self._group, self.name)

    def close(self) -> None:
        """Close the connection."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _connected(self) -> notification_store.Store:
        if self._store is not None:
            return self._store
        terms = self._terms
        store = notification_store.Store(
            client.connect(
                terms.settings, timeout_s=terms.timeout_s + self.PATIENCE_S
            ),
            terms.prefix,
        )
        try:
            store.keep_alive(self.name, terms.lease_s)
            self.subscribe(store)
            self._client_id = store.client_id()
        except client.FAILURES:
            store.close()
            raise
        now_s = time.monotonic()
        self._renew_s = now_s + terms.lease_s / 3
        # After an outage the others' names may have expired though they live.
        self._claim_s = now_s + (terms.lease_s if self._outage.count else 0)
        self._store = store
        return store

    def _upkeep(
        self, store: notification_store.Store
    ) -> list[notification_store.Entry]:
        self._accounts.repay(store)
        self._renew(store)
        if not self._was_read_again:
            self._was_read_again = True
            if self._usable:
                return store.read_again(self._usable, self._group, self.name)
        if time.monotonic() < self._claim_s:
            return []
        self._claim_s = time.monotonic() + self._terms.lease_s / 2
        if len(self._usable) < len(self._streams):
            self.subscribe(store)
        claimed: list[notification_store.Entry] = []
        for stream in self._usable:
            claimed += store.claim(
                stream,
                self._group,
                self.name,
                self._terms.lease_s,
                MOST_CLAIMED,
            )
        self._tally.add('claimed', len(claimed))
        return claimed

    def _renew(self, store: notification_store.Store) -> None:
        if time.monotonic() >= self._renew_s:
            store.keep_alive(self.name, self._terms.lease_s)
            self._renew_s = time.monotonic() + self._terms.lease_s / 3

    def _accepted(
        self, entries: Iterable[notification_store.Entry]
    ) -> list[notification_terms.Taken]:
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

    def _opened(
        self, entry: notification_store.Entry
    ) -> notification_terms.Taken | None:
        """Read an entry; None for one that is not for us, or for nobody."""
        addressee = entry.fields.get(b'group', self._group.encode())
        if not entry.fields or addressee != self._group.encode():
            return None
        try:
            body = notification_store.checked_body(entry, MOST_DELIVERIES)
            return notification_terms.Taken(
                entry,
                *notification_store.decode(body, self._terms.max_message_size),
            )
        except notification_store.BadNotification as error:
            self._tally.add('garbage')
            LOG.warning('Dropped %s of %s: %s', entry.id, entry.stream, error)
            return None


def _is_lost(error: Exception) -> bool:
    """Whether our group is gone: Redis was flushed, or somebody tidied."""
    words = str(error)
    return any(word in words for word in ('NOGROUP', 'UNBLOCKED', 'no such k'))
