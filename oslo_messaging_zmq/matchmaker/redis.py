# SPDX-License-Identifier: Apache-2.0

"""A matchmaker that keeps the addresses in Redis.

Every listener has a record that expires and is refreshed three times in its
life. A sorted set per topic says who listens, and a mark per topic changes
whenever that does, so that a node asks one cheap question per ``poll_s`` and
reads only what changed. Nothing of other programs is deleted or overwritten
outside the prefix; records that are not understood are dropped, counted and
named.
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
"""Records written for the first time; written because they were missing;
topics read; records, and members of an index, that were not understood or
too many; commands that Redis refused; keys whose value had a wrong type and
was removed; times that Redis was away or refused everything."""

FORGET_S = 600.0
"""A topic without a question for so long is no longer kept up to date."""

_MOST_NAMED = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """The arguments of a :class:`RedisMatchmaker`."""

    settings: url.RedisSettings
    keys: store.Keys
    ttl_s: float
    poll_s: float
    timeout_s: float
    most_peers: int


class Faults:
    """Counts and names what is wrong in Redis, each thing once.

    :param counters: where it is counted.
    """

    def __init__(self, counters: dict[str, int]) -> None:
        self._counters = counters
        self._named: set[str] = set()

    def note(self, counter: str, texts: Sequence[str], count: int = 1) -> None:
        """Name what was not named before, in one line.

        :param counter: what it is counted as.
        :param texts: what is wrong, and what was expected.
        :param count: how many things each text stands for.
        """
        news = [text for text in texts if text not in self._named]
        if not news:
            return
        if len(self._named) > _MOST_NAMED:
            self._named.clear()
        self._named.update(news[:_MOST_NAMED])
        self._counters[counter] += len(news) * count
        more = f' (and {len(news) - 3} more)' if len(news) > 3 else ''
        LOG.warning(
            'Left out a record in Redis: %s%s', '; '.join(news[:3]), more
        )


class _Rounds:
    """Announces, withdraws, asks for changes and reads, time and again.

    :param plan: how often, and where.
    :param shared: what is to be told, and what is known.
    :param watchers: told of every change.
    """

    def __init__(
        self,
        plan: _Plan,
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
        """Go on until ``shared.stopping``, whatever happens."""
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
        """Keep listeners whose records ended while they could not be renewed.

        They announce themselves again, perhaps after we ask. Readers notice
        an outage later than others do, by half a record's life at most; a
        record lives on for two thirds of its life when others notice.
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
            self._guarded(self._store().withdraw, peer)
        if self._shared.stopping:
            return
        if now_s >= self._poll_s:
            topics = topics | self._changed(now_s)
            self._poll_s = now_s + self._plan.poll_s
        for own in self._shared.due(now_s):
            if self._guarded(self._announce, own, now_s):
                topics.add((own.peer.exchange, own.peer.topic))
        for topic in sorted(topics):
            self._guarded(self._read, topic, now_s)

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

    def _guarded(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Do what may fail for one key without harm to the others."""
        try:
            return step(*arguments)
        except redis.ResponseError as error:
            if not client.concerns_one_key(error):
                raise
            self._faults.note('refused', [str(error)])
            return None

    def _note_replaced(self, key: str) -> None:
        self._shared.counters['replaced'] += 1

    def _changed(self, now_s: float) -> set[knowledge.Topic]:
        """Topics that have to be read."""
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

    def _read(self, topic: knowledge.Topic, now_s: float) -> None:
        """Bring one topic up to date."""
        shared, ttl_s = self._shared, self._plan.ttl_s
        listing = shared.listings.get(topic)
        if listing is None:
            return
        listing.due_s = now_s + ttl_s / 2 * random.uniform(0.8, 1.0)
        members = self._store().members(*topic)
        found = self._records(topic, listing.unknown(members.names))
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
            self._tell(topic, listing.peers)

    def _records(
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
                peer = _decoded(text)
                if peer is not None:
                    _check(peer, generation, peer_id, topic)
                    found[name] = peer
            except store.BadRecord as error:
                wrong.append(f'{self._plan.keys.peer(peer_id)}: {error}')
        self._faults.note('records_dropped', wrong)
        return found

    def _tell(self, topic: knowledge.Topic, peers: contract.Peers) -> None:
        for watcher in list(self._watchers):
            try:
                watcher(*topic, peers)
            except Exception as error:  # noqa: BLE001 -- others come next
                LOG.error('Watcher of listeners raised %r', error)


def _decoded(text: bytes | Exception) -> contract.AnnouncedListener | None:
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
    """Listeners and their addresses, by way of Redis.

    All conversation with Redis is one thread's, which begins with the first
    use. A forked process makes a matchmaker of its own.

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
        self._timeout_s = timeout_s
        self._watchers: list[contract.Watcher] = []
        self._shared = knowledge.SharedKnowledge()
        plan = _Plan(
            settings, store.Keys(prefix), ttl_s, poll_s, timeout_s, most_peers
        )
        rounds = _Rounds(plan, self._shared, self._watchers)
        self._thread = threading.Thread(
            target=rounds.run, name='zmq-matchmaker', daemon=True
        )

    def register(self, peer: contract.AnnouncedListener) -> None:
        """Announce a listener of this process until it is unregistered.

        Waits until it is announced, but not for a Redis that is away.

        :raises ValueError: no other process could read its record.
        """
        store.encode(peer)
        self._shared.add(peer)
        self._ask(None, 2 * self._timeout_s)

    def unregister(self, peer_id: str) -> None:
        """Take a listener back; its record goes at once if Redis is there."""
        self._shared.remove(peer_id)
        self._shared.wake.set()

    def peers(self, exchange: str, topic: str) -> contract.Peers:
        """Known listeners; sorted by id.

        Only the first question about a topic waits, at most ``timeout_s``.
        """
        listing = self._shared.use((exchange, topic))
        self._run()
        if not listing.tried:
            self._ask((exchange, topic), self._timeout_s)
        return listing.peers

    def look_up(
        self, exchange: str, topic: str, timeout_s: float
    ) -> contract.Peers:
        """Listeners, asked afresh; sorted by id.

        While Redis is away this waits for the next attempt to reach it.
        """
        listing = self._shared.use((exchange, topic))
        self._ask((exchange, topic), timeout_s)
        return listing.peers

    def watch(self, callback: contract.Watcher) -> None:
        """Be told of changes, by the matchmaker's thread."""
        self._watchers.append(callback)

    def statistics(self) -> Mapping[str, int]:
        """Counters by name: see the reference page of the driver."""
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
        """Take back what was announced and end.

        Waits for Redis' answers, at most twice ``timeout_s``.
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
