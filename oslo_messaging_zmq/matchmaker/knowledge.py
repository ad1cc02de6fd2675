# SPDX-License-Identifier: Apache-2.0

"""Data of a matchmaker: own listeners, and listeners of used topics.

The matchmaker's thread and its callers share it. :class:`SharedKnowledge`
protects it with one lock that is never held during a blocking call.
"""

import collections
from collections.abc import Mapping
import dataclasses
import threading
import time

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import store

Topic = tuple[str, str]


@dataclasses.dataclass(slots=True)
class Own:
    """A listener of this process.

    :param peer: with its generation, 0 before the first announcement.
    :param due_s: time of the next announcement, monotonic clock.
    """

    peer: contract.AnnouncedListener
    due_s: float = 0.0


@dataclasses.dataclass(slots=True)
class Question:
    """A thread's wait for the reading of a topic, or (``None``) for all
    announcements.
    """

    topic: Topic | None
    answered: threading.Event


class Listing:
    """The listeners of one topic.

    Members that are missing after Redis lost all data stay for a while: they
    still run, and announce themselves again.
    """

    def __init__(self, now_s: float) -> None:
        self.peers: contract.Peers = ()
        self.mark = b''
        self.used_s = now_s
        self.due_s = now_s
        self.tried = False
        self._epoch = ''
        self._known: dict[str, contract.AnnouncedListener] = {}
        self._kept_until_s: dict[str, float] = {}

    def unknown(self, names: tuple[str, ...]) -> list[str]:
        """Return the members whose records must be read."""
        doubtful = _ambiguous_members(names)
        return [
            name
            for name in names
            if name not in self._known or name in doubtful
        ]

    def update(
        self,
        members: store.TopicMembers,
        found: Mapping[str, contract.AnnouncedListener],
        now_s: float,
        grace_s: float,
    ) -> bool:
        """Store the members and records that were read.

        :param members: of the topic.
        :param found: records that were read, by member.
        :param now_s: monotonic clock.
        :param grace_s: how long members stay after a loss, in seconds.
        :returns: whether the listeners changed.
        """
        if self._epoch not in ('', members.epoch):
            self._kept_until_s = dict.fromkeys(self._known, now_s + grace_s)
        self._epoch = members.epoch
        self.mark = members.mark
        doubtful = _ambiguous_members(members.names)
        known = {
            name: peer
            for name, peer in self._known.items()
            if name not in doubtful
        } | dict(found)
        listed = {name: known[name] for name in members.names if name in known}
        self._known = self._kept_members(listed, now_s) | listed
        before = self.peers
        self.peers = tuple(sorted(self._known.values(), key=_peer_id))
        return self.peers != before

    def keep_all(self, until_s: float) -> None:
        """Keep all listeners for a while, because their records could not be
        renewed.

        :param until_s: monotonic clock.
        """
        self._kept_until_s = dict.fromkeys(self._known, until_s)

    def _kept_members(
        self, listed: Mapping[str, contract.AnnouncedListener], now_s: float
    ) -> dict[str, contract.AnnouncedListener]:
        ids = {peer.id for peer in listed.values()}
        self._kept_until_s = {
            name: until_s
            for name, until_s in self._kept_until_s.items()
            if until_s > now_s and self._known[name].id not in ids
        }
        return {name: self._known[name] for name in self._kept_until_s}

    @property
    def keeps(self) -> bool:
        """Whether it has members that are not listed at present."""
        return bool(self._kept_until_s)


class SharedKnowledge:
    """All data that threads share, protected by one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.stopping = False
        self.own: dict[str, Own] = {}
        self.leaving: list[contract.AnnouncedListener] = []
        self.listings: dict[Topic, Listing] = {}
        self.questions: collections.deque[Question] = collections.deque()
        self.counters: collections.Counter[str] = collections.Counter()

    def add(self, peer: contract.AnnouncedListener) -> None:
        """Add or replace a listener of this process."""
        with self.lock:
            present = self.own.get(peer.id)
            if present is None:
                peer = dataclasses.replace(peer, generation=0)
                self.own[peer.id] = Own(peer)
                return
            same = dataclasses.replace(
                peer, generation=present.peer.generation
            )
            if same != present.peer:
                self.leaving.append(present.peer)
                peer = dataclasses.replace(peer, generation=0)
                self.own[peer.id] = Own(peer)

    def remove(self, peer_id: str) -> None:
        """Delete a listener of this process, and request that its record
        is deleted.
        """
        with self.lock:
            removed = self.own.pop(peer_id, None)
            if removed is not None and removed.peer.generation:
                self.leaving.append(removed.peer)

    def use(self, topic: Topic) -> Listing:
        """Return the listeners of a topic, which are updated from now on."""
        with self.lock:
            now_s = time.monotonic()
            listing = self.listings.get(topic)
            if listing is None:
                listing = self.listings[topic] = Listing(now_s)
            listing.used_s = now_s
            return listing

    def ask(self, topic: Topic | None, timeout_s: float) -> None:
        """Wake the thread, and wait until it has tried."""
        question = Question(topic, threading.Event())
        with self.lock:
            self.questions.append(question)
        self.wake.set()
        question.answered.wait(timeout_s)

    def take_questions(self) -> list[Question]:
        """Return all open questions, and remove them."""
        with self.lock:
            taken = list(self.questions)
            self.questions.clear()
        return taken

    def take_leaving(self) -> list[contract.AnnouncedListener]:
        """Return the listeners whose records must be deleted, and remove
        them.
        """
        with self.lock:
            taken, self.leaving = self.leaving, []
        return taken

    def leave_all(self) -> None:
        """Request that all records of this process are deleted."""
        with self.lock:
            self.leaving += [
                own.peer for own in self.own.values() if own.peer.generation
            ]
            self.own.clear()

    def due(self, now_s: float) -> list[Own]:
        """Return the own listeners that must be announced now."""
        with self.lock:
            return [own for own in self.own.values() if own.due_s <= now_s]

    def announced(self) -> list[str]:
        """Return the ids of own listeners that have a record."""
        with self.lock:
            return [own.peer.id for own in self.own.values() if own.due_s]

    def announced_now(
        self, own: Own, peer: contract.AnnouncedListener, due_s: float
    ) -> None:
        """Record that an own listener was announced as ``peer``."""
        with self.lock:
            own.peer, own.due_s = peer, due_s
            if self.own.get(peer.id) is not own:
                self.leaving.append(peer)

    def keep_all(self, until_s: float) -> None:
        """Keep all known listeners for a while, listed or not.

        :param until_s: monotonic clock.
        """
        with self.lock:
            for listing in self.listings.values():
                listing.keep_all(until_s)

    def read_all_again(self) -> None:
        """Mark all topics to be read again."""
        with self.lock:
            for listing in self.listings.values():
                listing.due_s = 0.0

    def announce_all_again(self) -> None:
        """Mark all own listeners to be announced again."""
        with self.lock:
            for own in self.own.values():
                own.due_s = 0.0

    def listings_in_use(
        self, now_s: float, forget_s: float
    ) -> dict[Topic, Listing]:
        """Return the topics that were used recently, and delete the others."""
        with self.lock:
            self.listings = {
                topic: listing
                for topic, listing in self.listings.items()
                if now_s - listing.used_s <= forget_s
            }
            return dict(self.listings)


def _ambiguous_members(names: tuple[str, ...]) -> set[str]:
    """Return the members that share a listener, which has only one record.

    Earlier readings of them are not valid, because all but one are outdated.
    """
    ids = collections.Counter(map(_id_of_member, names))
    return {name for name in names if ids[_id_of_member(name)] > 1}


def _id_of_member(member: str) -> str:
    return member.rpartition('@')[2]


def _peer_id(peer: contract.AnnouncedListener) -> tuple[str, int]:
    return peer.id, peer.generation
