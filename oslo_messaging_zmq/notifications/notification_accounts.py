# SPDX-License-Identifier: Apache-2.0

"""Which notifications a listener has taken and not settled yet."""

import logging
import threading

from oslo_messaging_zmq.notifications import store as notification_store
from oslo_messaging_zmq.notifications import terms as notification_terms
from oslo_messaging_zmq.redis import client

LOG = logging.getLogger(__name__)


class Accounts:
    """Open entries of one listener, and what Redis has not heard yet.

    :param terms: what is common.
    :param group: of the pool.
    :param answers: connection of the threads that settle.
    """

    def __init__(
        self,
        terms: notification_terms.Terms,
        group: str,
        answers: notification_store.Store,
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

    def take(self, entry: notification_store.Entry) -> bool:
        """Take note of an entry.

        :returns: False when it is open already.
        """
        key = entry.stream, entry.id
        with self._lock:
            is_new = key not in self._open
            self._open.add(key)
        return is_new

    def settle(
        self, entry: notification_store.Entry, body: bytes | None
    ) -> None:
        """Say what became of an entry, now or as soon as Redis hears it.

        :param body: what to give to the pool again; None when all is done.
        """
        key = entry.stream, entry.id
        try:
            self._say(self._answers, key, body)
        except client.FAILURES as error:
            self._owed[key] = body
            LOG.warning(
                'What became of %s of %s is told later: %s',
                entry.id,
                entry.stream,
                client.explain(error, self._terms.settings),
            )

    def repay(self, store: notification_store.Store) -> None:
        """Say what could not be said before.

        :raises redis.RedisError: Redis is away still.
        """
        for key, body in list(self._owed.items()):
            self._say(store, key, body)
            self._owed.pop(key, None)

    def _say(
        self,
        store: notification_store.Store,
        key: tuple[str, str],
        body: bytes | None,
    ) -> None:
        stream, entry_id = key
        if body is None:
            store.finish(stream, self._group, entry_id)
        else:
            store.requeue(stream, self._group, entry_id, body)
        with self._lock:
            self._open.discard(key)
        self._has_room.set()
