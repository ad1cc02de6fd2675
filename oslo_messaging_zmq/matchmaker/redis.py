# SPDX-License-Identifier: Apache-2.0

"""A matchmaker that keeps the addresses in Redis.

::

    RedisMatchmaker(
        settings: transport_url.RedisSettings,
        *,
        ttl_s: float = 30.0,         # an unrefreshed address lives so long
        poll_s: float = 1.0,         # how often changes are asked for
        prefix: str = 'oslo_messaging_zmq',   # of all keys in Redis
        timeout_s: float = 2.0,      # longest wait for Redis, per answer
        most_peers: int = 10000,     # listeners of one topic, at most
    )

Every listener has a record that expires and is refreshed three times in its
life. A sorted set per topic says who listens, and a mark per topic changes
whenever that does, so that a node asks one cheap question per ``poll_s`` and
reads only what changed. Nothing of other programs is deleted or overwritten
outside the prefix; what is not understood is dropped, counted and named.
"""

from collections.abc import Mapping
import os
from typing import Any
import weakref

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import listing as matchmaker_listing
from oslo_messaging_zmq.matchmaker import matchmaker_reading
from oslo_messaging_zmq.matchmaker import matchmaker_records
from oslo_messaging_zmq.matchmaker import matchmaker_rounds
from oslo_messaging_zmq.redis import url

Peers = matchmaker_listing.Peers


class RedisMatchmaker(contract.Matchmaker):
    """Says who listens where, by way of Redis.

    All conversation with Redis is one native thread's, which nothing that
    eventlet does can hold up. It begins with the first use, and in a forked
    process again: a child knows what its parent knew of others, and announces
    nothing of what its parent announced.

    :param settings: where Redis is.
    :param ttl_s: how long an address lives that is not refreshed, seconds.
    :param poll_s: time between two questions for changes, seconds.
    :param prefix: with which every key in Redis begins.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    :param most_peers: how many listeners of one topic are read at most.
    """

    def __init__(
        self,
        settings: url.RedisSettings,
        *,
        ttl_s: float = 30.0,
        poll_s: float = 1.0,
        prefix: str = 'oslo_messaging_zmq',
        timeout_s: float = 2.0,
        most_peers: int = 10000,
    ) -> None:
        self._plan = matchmaker_reading.Plan(
            settings=settings,
            keys=matchmaker_records.Keys(prefix),
            ttl_s=ttl_s,
            poll_s=poll_s,
            timeout_s=timeout_s,
            most_peers=most_peers,
        )
        self._watchers: list[contract.Watcher] = []
        self._shared = matchmaker_listing.Knowledge()
        self._thread: Any = None
        _EVERY.add(self)

    def register(self, peer: addressing.Peer) -> None:
        """Announce a listener of this process until it is unregistered.

        Waits until it is announced, but not for a Redis that is away.

        :raises ValueError: no other process could read its record.
        """
        matchmaker_records.encode(peer)
        self._shared.add(peer)
        self._ask(None, 2 * self._plan.timeout_s)

    def unregister(self, peer_id: str) -> None:
        """Take a listener back; its record goes at once if Redis is there."""
        self._shared.remove(peer_id)
        self._shared.wake.set()

    def peers(self, exchange: str, topic: str) -> Peers:
        """Who listens, as far as is known; sorted by id.

        Only the first question about a topic waits, at most ``timeout_s``.
        """
        listing = self._shared.use((exchange, topic))
        self._run()
        if not listing.tried:
            self._ask((exchange, topic), self._plan.timeout_s)
        return listing.peers

    def look_up(self, exchange: str, topic: str, timeout_s: float) -> Peers:
        """Who listens, asked afresh; sorted by id.

        While Redis is away this waits for the next attempt to reach it.
        """
        listing = self._shared.use((exchange, topic))
        self._ask((exchange, topic), timeout_s)
        return listing.peers

    def watch(self, callback: contract.Watcher) -> None:
        """Be told of changes, by the matchmaker's native thread."""
        self._watchers.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Counters by name: see the reference page of the driver."""
        shared = self._shared
        with shared.lock:
            return {
                name: shared.counters[name]
                for name in matchmaker_rounds.COUNTERS
            } | {
                'own': len(shared.own),
                'topics': len(shared.listings),
                'known': sum(
                    len(listing.peers) for listing in shared.listings.values()
                ),
            }

    def stop(self) -> None:
        """Take back what was announced and end.

        Waits for Redis' answers, at most twice ``timeout_s``.
        """
        shared = self._shared
        with shared.lock:
            running = self._thread is not None and not shared.stopping
            shared.stopping = True
        shared.wake.set()
        if not running or self._is_own_thread():
            return
        if shared.ended.wait(2 * self._plan.timeout_s):
            shared.wake.close()
            shared.ended.close()

    def after_fork(self) -> None:
        """Begin anew in a child process, where no other thread exists."""
        self._shared = self._shared.inherited()
        self._thread = None

    def _ask(
        self, topic: matchmaker_listing.Topic | None, timeout_s: float
    ) -> None:
        if self._shared.stopping or self._is_own_thread():
            return
        self._run()
        self._shared.ask(topic, timeout_s)

    def _run(self) -> None:
        if self._thread is not None or self._shared.stopping:
            return
        native_log.prepare()
        shared = self._shared
        with shared.lock:
            if self._thread is None:
                work = matchmaker_rounds.Rounds(
                    self._plan, shared, self._watchers
                )
                self._thread = threads.start('zmq-matchmaker', work.run)

    def _is_own_thread(self) -> bool:
        identity = threads.original('_thread').get_ident()
        return self._thread is not None and self._thread.ident == identity


_EVERY: weakref.WeakSet[RedisMatchmaker] = weakref.WeakSet()


def _after_fork() -> None:
    for one in list(_EVERY):
        one.after_fork()


os.register_at_fork(after_in_child=_after_fork)
