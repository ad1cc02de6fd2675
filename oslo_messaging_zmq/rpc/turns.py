# SPDX-License-Identifier: Apache-2.0

"""Limits the messages in progress, in total and for each peer.

Messages of a peer beyond its limit wait, and peers take turns, so that a peer
with many messages delays other peers only briefly.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any
from typing import Generic
from typing import TypeVar

_MAX_PEERS = 10_000

Message = TypeVar('Message')


class Credit:
    """Limits the number of messages in progress.

    After the limit is reached, half of the messages must be processed before
    more are delivered, because a wake-up per message would cost more than the
    message.

    :param limit: largest number of messages in progress.
    :param wake: called when ``is_awaited`` and half are processed, perhaps
        more than once.
    """

    __slots__ = ('_in_work', '_limit', '_served', '_wake', 'is_awaited')

    def __init__(self, limit: int, wake: Callable[[], None]) -> None:
        self._limit = limit
        self._in_work = 0
        # Appending needs no lock, which a finaliser must not wait for.
        self._served: collections.deque[None] = collections.deque()
        self._wake = wake
        self.is_awaited = False

    def take(self) -> None:
        """Count a delivered message; for one thread only."""
        self._in_work += 1

    def served(self) -> None:
        """Count a processed message; thread-safe."""
        self._served.append(None)
        if self.is_awaited and self.has_half():
            self._wake()

    def left(self) -> int:
        """Return the number of messages that may be delivered now; for
        one thread.
        """
        while self._served:
            self._served.popleft()
            self._in_work -= 1
        return self._limit - self._in_work

    def has_half(self) -> bool:
        """Check whether at most half of the limit is in progress."""
        return self.in_work() <= self._limit // 2

    def in_work(self) -> int:
        """Return the number of messages in progress."""
        return self._in_work - len(self._served)


@dataclasses.dataclass(slots=True)
class _PeerQueue:
    credit: Credit
    waiting: collections.deque[tuple[Any, int]]
    size: int = 0


class MessageTurns(Generic[Message]):
    """Waiting messages, in their sequence per peer; for one thread only.

    :param part: largest number of messages in progress of one peer.
    :param kept: largest number of waiting messages of one peer.
    :param kept_bytes: largest total size of these, unless it is one.
    :param wake: called on any thread when next() may have a message again,
        perhaps more than once.
    """

    def __init__(
        self, part: int, kept: int, kept_bytes: int, wake: Callable[[], None]
    ) -> None:
        self._part = part
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._wake = wake
        # Those heard longest ago first.
        self._peers: collections.OrderedDict[str | bytes, _PeerQueue] = (
            collections.OrderedDict()
        )
        self._ring: collections.deque[_PeerQueue] = collections.deque()

    def __bool__(self) -> bool:
        return bool(self._ring)

    def has_room(self, name: str | bytes, size: int) -> bool:
        """Check whether one more message of a peer may wait.

        :param name: of the peer, or of its connection.
        :param size: of the message, bytes.
        """
        peer = self._peers.get(name)
        return (
            peer is None
            or not peer.waiting
            or (
                len(peer.waiting) < self._kept
                and peer.size + size <= self._kept_bytes
            )
        )

    def add(self, name: str | bytes, message: Message, size: int) -> None:
        """Add a waiting message."""
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = _PeerQueue(
                Credit(self._part, self._wake), collections.deque()
            )
            if len(self._peers) > _MAX_PEERS:
                self._peers.popitem(last=False)
        else:
            self._peers.move_to_end(name)
        if not peer.waiting:
            self._ring.append(peer)
        peer.waiting.append((message, size))
        peer.size += size

    def next(self) -> tuple[Message, Credit] | None:
        """Return the next message, and the credit of its peer.

        :returns: ``None`` if there is none, or only of peers at their limits.
        """
        for _ in range(len(self._ring)):
            peer = self._ring.popleft()
            if not self._may_deliver(peer):
                self._ring.append(peer)
                continue
            message, size = peer.waiting.popleft()
            peer.size -= size
            if peer.waiting:
                self._ring.append(peer)
            return message, peer.credit
        return None

    def _may_deliver(self, peer: _PeerQueue) -> bool:
        credit = peer.credit
        if not credit.is_awaited and credit.left() > 0:
            return True
        credit.is_awaited = True
        # Perhaps it was served just before anybody knew that we wait.
        credit.is_awaited = not credit.has_half()
        return not credit.is_awaited
