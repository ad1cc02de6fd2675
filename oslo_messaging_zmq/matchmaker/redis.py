# SPDX-License-Identifier: Apache-2.0

"""A matchmaker that stores the addresses in Redis.

Every listener has a record that expires and is refreshed three times in its
lifetime. A sorted set per topic contains the listeners, and a mark per topic
changes with it, so that a node sends one cheap query per ``poll_s`` and reads
only what changed. Nothing outside the prefix is deleted or overwritten;
invalid records are dropped, counted and logged.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import logging
import random
import threading
import time
from typing import Any

import redis

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import knowledge
from oslo_messaging_zmq.matchmaker import store
from oslo_messaging_zmq.redis import client
from oslo_messaging_zmq.redis import url

LOG = logging.getLogger(__name__)

COUNTERS = (
    'announced',
    'announced_again',
    'reads',
    'records_dropped',
    'members_dropped',
    'refused',
    'replaced',
    'outages',
)
"""Records written for the first time; records written again because they
were missing; topics read; invalid or excess records, and index members;
commands that Redis refused; keys with a value of a wrong type that was
removed; outages of Redis."""

FORGET_S = 600.0
"""Seconds without a query after which a topic is not updated any more."""

_MAX_NAMED = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a :class:`RedisMatchmaker`."""

    settings: url.RedisSettings
    keys: store.Keys
    ttl_s: float
    poll_s: float
    timeout_s: float
    most_peers: int


class Faults:
    """Counts and logs errors in Redis' data, each error once.

    :param counters: to increase.
    """

    def __init__(self, counters: dict[str, int]) -> None:
        self._counters = counters
        self._named: set[str] = set()

    def note(self, counter: str, texts: Sequence[str], count: int = 1) -> None:
        """Log errors that were not logged before, in one line.

        :param counter: to increase.
        :param texts: the errors, with the expectations.
        :param count: number of cases that each text represents.
        """
        news = [text for text in texts if text not in self._named]
        if not news:
            return
        if len(self._named) > _MAX_NAMED:
            self._named.clear()
        self._named.update(news[:_MAX_NAMED])
        self._counters[counter] += len(news) * count
        more = f' (and {len(news) - 3} more)' if len(news) > 3 else ''
        LOG.warning(
            'Left out a record in Redis: %s%s', '; '.join(news[:3]), more
        )


class _UpdateLoop:
    """Announces, withdraws and reads listeners periodically.

    :param plan: intervals and keys.
    :param shared: data shared with the callers.
    :param watchers: called after every change.
    """

    def __init__(
        self,
        plan: _Arguments,
        shared: knowledge.SharedKnowledge,
        watchers: Sequence[contract.Watcher],
    ) -> None:
        self._plan = plan
        self._shared = shared
        self._watchers = watchers
        self._faults = Faults(shared.counters)
        self._outage = client.Outage(plan.settings, LOG, 'news of listeners')
        self._connected: store.MatchmakerStore | None = None
        self._attempt_s = 0.0
        self._poll_s = 0.0
        self._away_since_s: float | None = None

    def run(self) -> None:
        """Run until ``shared.stopping``, also after errors."""
        shared = self._shared
        while not shared.stopping:
            shared.wake.wait(self._pause_s())
            shared.wake.clear()
            if time.monotonic() >= self._attempt_s and not shared.stopping:
                self._attempt()
        if not self._outage.lasts:
            shared.leave_all()
            self._attempt()
        self._close()
        self._answer(shared.take_questions())

    def _pause_s(self) -> float:
        next_s = self._attempt_s if self._outage.lasts else self._poll_s
        return max(0.0, next_s - time.monotonic())

    def _attempt(self) -> None:
        questions = self._shared.take_questions()
        try:
            self._keep_after_outage()
            self._round({one.topic for one in questions if one.topic})
            self._outage.worked()
            self._away_since_s = None
        except client.FAILURES as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 -- this thread must live
            LOG.error('Unexpected %s: %s', type(error).__name__, error)
            self._failed(error)
        finally:
            self._answer(questions)

    def _keep_after_outage(self) -> None:
        """Keep listeners whose records expired while they could not be
        renewed.

        They announce themselves again, perhaps after this process reads.
        Readers notice an outage later than others, by half of a record's
        lifetime at most; a record lives for two thirds of its lifetime when
        others notice.
        """
        now_s, since_s = time.monotonic(), self._away_since_s
        if since_s is not None and now_s - since_s > self._plan.ttl_s / 8:
            self._shared.keep_all(
                now_s + self._plan.ttl_s + client.LONGEST_PAUSE_S
            )

    def _failed(self, error: Exception) -> None:
        if self._away_since_s is None:
            self._away_since_s = time.monotonic()
        # The next round works only if Redis takes all of it again.
        self._shared.read_all_again()
        self._poll_s = 0.0
        self._attempt_s = time.monotonic() + self._outage.failed(error)
        self._shared.counters['outages'] = self._outage.count
        self._close()

    def _answer(self, questions: list[knowledge.Question]) -> None:
        for question in questions:
            if question.topic in self._shared.listings:
                self._shared.listings[question.topic].tried = True
            question.answered.set()

    def _close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    def _round(self, topics: set[knowledge.Topic]) -> None:
        now_s = time.monotonic()
        for peer in self._shared.take_leaving():
            self._run_isolated(self._store().withdraw, peer)
        if self._shared.stopping:
            return
        if now_s >= self._poll_s:
            topics = topics | self._changed_topics(now_s)
            self._poll_s = now_s + self._plan.poll_s
        for own in self._shared.due(now_s):
            if self._run_isolated(self._announce, own, now_s):
                topics.add((own.peer.exchange, own.peer.topic))
        for topic in sorted(topics):
            self._run_isolated(self._update_topic, topic, now_s)

    def _store(self) -> store.MatchmakerStore:
        if self._connected is None:
            plan = self._plan
            self._connected = store.MatchmakerStore(
                client.connect(plan.settings, timeout_s=plan.timeout_s),
                plan.keys,
                plan.ttl_s,
                plan.most_peers,
                self._note_replaced,
            )
        return self._connected

    def _run_isolated(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Run a step whose error about one key must not stop the others."""
        try:
            return step(*arguments)
        except redis.ResponseError as error:
            if not client.concerns_one_key(error):
                raise
            self._faults.note('refused', [str(error)])
            return None

    def _note_replaced(self, key: str) -> None:
        self._shared.counters['replaced'] += 1

    def _changed_topics(self, now_s: float) -> set[knowledge.Topic]:
        """Return the topics that must be read."""
        listings = self._shared.listings_in_use(now_s, FORGET_S)
        marks, lost = self._store().changes(
            list(listings), self._shared.announced()
        )
        if lost:
            self._shared.announce_all_again()
        return {
            topic
            for (topic, listing), mark in zip(
                listings.items(), marks, strict=True
            )
            if mark != listing.mark or listing.keeps or listing.due_s <= now_s
        }

    def _announce(self, own: knowledge.Own, now_s: float) -> bool:
        peer, is_new = own.peer, own.peer.generation == 0
        if is_new:
            generation = self._store().generation()
            peer = dataclasses.replace(peer, generation=generation)
        was_missing = self._store().announce(peer)
        due_s = now_s + self._plan.ttl_s / 3 * random.uniform(0.8, 1.0)
        self._shared.announced_now(own, peer, due_s)
        if was_missing:
            name = 'announced' if is_new else 'announced_again'
            self._shared.counters[name] += 1
        return was_missing

    def _update_topic(self, topic: knowledge.Topic, now_s: float) -> None:
        """Read one topic, and call the watchers after a change."""
        shared, ttl_s = self._shared, self._plan.ttl_s
        listing = shared.listings.get(topic)
        if listing is None:
            return
        listing.due_s = now_s + ttl_s / 2 * random.uniform(0.8, 1.0)
        members = self._store().members(*topic)
        found = self._read_records(topic, listing.unknown(members.names))
        with shared.lock:
            changed = listing.update(members, found, now_s, ttl_s)
            shared.counters['reads'] += 1
        if members.dropped:
            text = (
                f'members of {self._plan.keys.index(*topic)} above'
                f' {self._plan.most_peers}, or with names above'
                f' {store.MEMBER_LIMIT} bytes'
            )
            self._faults.note('members_dropped', [text], members.dropped)
        if changed:
            self._call_watchers(topic, listing.peers)

    def _read_records(
        self, topic: knowledge.Topic, names: Sequence[str]
    ) -> Mapping[str, contract.AnnouncedListener]:
        found: dict[str, contract.AnnouncedListener] = {}
        wrong: list[str] = []
        parsed = []
        for name in names:
            try:
                parsed.append((name, *store.parse_member(name)))
            except store.BadRecord as error:
                index = self._plan.keys.index(*topic)
                wrong.append(f'member of {index}: {error}')
        texts = self._store().records([peer_id for _, _, peer_id in parsed])
        for (name, generation, peer_id), text in zip(
            parsed, texts, strict=True
        ):
            try:
                peer = _decode_record(text)
                if peer is not None:
                    _check(peer, generation, peer_id, topic)
                    found[name] = peer
            except store.BadRecord as error:
                wrong.append(f'{self._plan.keys.peer(peer_id)}: {error}')
        self._faults.note('records_dropped', wrong)
        return found

    def _call_watchers(
        self, topic: knowledge.Topic, peers: contract.Peers
    ) -> None:
        for watcher in list(self._watchers):
            try:
                watcher(*topic, peers)
            except Exception as error:  # noqa: BLE001 -- others come next
                LOG.error('Watcher of listeners raised %r', error)


def _decode_record(
    text: bytes | Exception,
) -> contract.AnnouncedListener | None:
    if isinstance(text, Exception):
        raise store.BadRecord(str(text))
    return store.decode(text) if text else None


def _check(
    peer: contract.AnnouncedListener,
    generation: int,
    peer_id: str,
    topic: knowledge.Topic,
) -> None:
    if (peer.generation, peer.id) != (generation, peer_id):
        raise store.BadRecord('it names another listener')
    if (peer.exchange, peer.topic) != topic:
        raise store.BadRecord('it names another topic')


class RedisMatchmaker(contract.Matchmaker):
    """Finds and announces listeners by Redis.

    One thread, which starts at the first use, sends all commands to Redis. A
    forked process needs its own matchmaker.

    :param settings: of the connection to Redis.
    :param ttl_s: lifetime of an address that is not refreshed, seconds.
    :param poll_s: time between two queries for changes, seconds.
    :param prefix: of every key in Redis.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    :param most_peers: largest number of listeners that are read per topic.
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
        self._timeout_s = timeout_s
        self._watchers: list[contract.Watcher] = []
        self._shared = knowledge.SharedKnowledge()
        plan = _Arguments(
            settings, store.Keys(prefix), ttl_s, poll_s, timeout_s, most_peers
        )
        rounds = _UpdateLoop(plan, self._shared, self._watchers)
        self._thread = threading.Thread(
            target=rounds.run, name='zmq-matchmaker', daemon=True
        )

    def register(self, peer: contract.AnnouncedListener) -> None:
        """Announce a listener of this process until it is unregistered.

        It waits until the listener is announced, but not during an outage of
        Redis.

        :raises ValueError: if other processes could not read its record.
        """
        store.encode(peer)
        self._shared.add(peer)
        self._ask(None, 2 * self._timeout_s)

    def unregister(self, peer_id: str) -> None:
        """Withdraw a listener; its record is deleted at once if Redis
        answers.
        """
        self._shared.remove(peer_id)
        self._shared.wake.set()

    def peers(self, exchange: str, topic: str) -> contract.Peers:
        """Return the known listeners of a topic, sorted by id.

        Only the first call for a topic waits, at most ``timeout_s``.
        """
        listing = self._shared.use((exchange, topic))
        self._run()
        if not listing.tried:
            self._ask((exchange, topic), self._timeout_s)
        return listing.peers

    def look_up(
        self, exchange: str, topic: str, timeout_s: float
    ) -> contract.Peers:
        """Read the listeners of a topic again, sorted by id.

        During an outage of Redis it waits for the next attempt to connect.
        """
        listing = self._shared.use((exchange, topic))
        self._ask((exchange, topic), timeout_s)
        return listing.peers

    def watch(self, callback: contract.Watcher) -> None:
        """Register a callback for changes, called on the matchmaker's
        thread.
        """
        self._watchers.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Return counters by name; the reference page of the driver
        explains them.
        """
        shared = self._shared
        with shared.lock:
            return {name: shared.counters[name] for name in COUNTERS} | {
                'own': len(shared.own),
                'topics': len(shared.listings),
                'known': sum(
                    len(listing.peers) for listing in shared.listings.values()
                ),
            }

    def stop(self) -> None:
        """Withdraw all announced listeners, and stop.

        It waits for Redis' answers, at most twice ``timeout_s``.
        """
        with self._shared.lock:
            self._shared.stopping = True
        self._shared.wake.set()
        if self._thread.ident and not self._is_own_thread():
            self._thread.join(2 * self._timeout_s)

    def _ask(self, topic: knowledge.Topic | None, timeout_s: float) -> None:
        if self._shared.stopping or self._is_own_thread():
            return
        self._run()
        self._shared.ask(topic, timeout_s)

    def _run(self) -> None:
        if self._thread.ident or self._shared.stopping:
            return
        with self._shared.lock:
            if not self._thread.ident:
                self._thread.start()

    def _is_own_thread(self) -> bool:
        return self._thread is threading.current_thread()
