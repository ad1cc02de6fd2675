# SPDX-License-Identifier: Apache-2.0

"""How a matchmaker reads the listeners of a topic."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import random

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq.matchmaker import addressing
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import listing as matchmaker_listing
from oslo_messaging_zmq.matchmaker import matchmaker_records
from oslo_messaging_zmq.matchmaker import store as matchmaker_store
from oslo_messaging_zmq.redis import url

LOG = native_log.Log(__name__)

_MOST_NAMED = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The arguments of a :class:`.redis_matchmaker.RedisMatchmaker`."""

    settings: url.RedisSettings
    keys: matchmaker_records.Keys
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
        LOG.warning('Left out what Redis holds: %s%s',
                    '; '.join(news[:3]), more)  # fmt: skip


class Reader:
    """Reads the listeners of topics and tells the watchers.

    :param plan: how often, and where.
    :param shared: what is known.
    :param watchers: told of every change.
    :param faults: told of what is not understood.
    """

    def __init__(
        self,
        plan: Plan,
        shared: matchmaker_listing.Knowledge,
        watchers: Sequence[contract.Watcher],
        faults: Faults,
    ) -> None:
        self._plan = plan
        self._shared = shared
        self._watchers = watchers
        self._faults = faults

    def read(
        self,
        store: matchmaker_store.Store,
        topic: matchmaker_listing.Topic,
        now_s: float,
    ) -> None:
        """Bring one topic up to date.

        :raises redis.RedisError: Redis is away, or refused.
        """
        shared, ttl_s = self._shared, self._plan.ttl_s
        listing = shared.listings.get(topic)
        if listing is None:
            return
        listing.due_s = now_s + ttl_s / 2 * random.uniform(0.8, 1.0)
        members = store.members(*topic)
        found = self._records(store, topic, listing.unknown(members.names))
        with shared.lock:
            changed = listing.update(members, found, now_s, ttl_s)
            shared.counters['reads'] += 1
        if members.dropped:
            self._faults.note('members_dropped', [self._too_many(topic)],
                              members.dropped)  # fmt: skip
        if changed:
            self._tell(topic, listing.peers)

    def _records(
        self,
        store: matchmaker_store.Store,
        topic: matchmaker_listing.Topic,
        names: Sequence[str],
    ) -> Mapping[str, addressing.Peer]:
        found: dict[str, addressing.Peer] = {}
        wrong: list[str] = []
        parsed = []
        for name in names:
            try:
                parsed.append((name, *matchmaker_records.parse_member(name)))
            except matchmaker_records.BadRecord as error:
                index = self._plan.keys.index(*topic)
                wrong.append(f'member of {index}: {error}')
        texts = store.records([peer_id for _, _, peer_id in parsed])
        for (name, generation, peer_id), text in zip(
            parsed, texts, strict=True
        ):
            try:
                peer = _decoded(text)
                if peer is not None:
                    _check(peer, generation, peer_id, topic)
                    found[name] = peer
            except matchmaker_records.BadRecord as error:
                wrong.append(f'{self._plan.keys.peer(peer_id)}: {error}')
        self._faults.note('records_dropped', wrong)
        return found

    def _too_many(self, topic: matchmaker_listing.Topic) -> str:
        return (
            f'members of {self._plan.keys.index(*topic)} above'
            f' {self._plan.most_peers}, or with names above'
            f' {matchmaker_store.MEMBER_LIMIT} bytes'
        )

    def _tell(
        self, topic: matchmaker_listing.Topic, peers: matchmaker_listing.Peers
    ) -> None:
        for watcher in list(self._watchers):
            try:
                watcher(*topic, peers)
            except Exception as error:  # noqa: BLE001 -- others come next
                LOG.error('Watcher of listeners raised %r', error)


def _decoded(text: bytes | Exception) -> addressing.Peer | None:
    if isinstance(text, Exception):
        raise matchmaker_records.BadRecord(str(text))
    return matchmaker_records.decode(text) if text else None


def _check(
    peer: addressing.Peer,
    generation: int,
    peer_id: str,
    topic: matchmaker_listing.Topic,
) -> None:
    if (peer.generation, peer.id) != (generation, peer_id):
        raise matchmaker_records.BadRecord('it names another listener')
    if (peer.exchange, peer.topic) != topic:
        raise matchmaker_records.BadRecord('it names another topic')
