# SPDX-License-Identifier: Apache-2.0

"""How much may be in work: of all peers, and of each of them.

Messages of a peer beyond its part wait, and peers take turns, so that one who
asks without end does not delay the others for long.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any
from typing import Generic
from typing import TypeVar

_MOST_PEERS = 10_000

Message = TypeVar('Message')


class Credit:
    """How many messages may be handed over before some are served.

    Once it is used up, half of it must have come back before it is used
    again: a wake per message would cost more than the message.

    :param limit: so many.
    :param wake: called when ``is_awaited`` and half of it is back, perhaps
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
        """Note a message that is handed over. One thread's."""
        self._in_work += 1

    def served(self) -> None:
        """Note a message that was served. Any thread's."""
        self._served.append(None)
        if self.is_awaited and self.has_half():
            self._wake()

    def left(self) -> int:
        """How many messages may be handed over now. One thread's."""
        while self._served:
            self._served.popleft()
            self._in_work -= 1
        return self._limit - self._in_work

    def has_half(self) -> bool:
        """Whether at least half of it is there."""
        return self.in_work() <= self._limit // 2

    def in_work(self) -> int:
        """How many messages are being served."""
        return self._in_work - len(self._served)


@dataclasses.dataclass(slots=True)
class _Peer:
    credit: Credit
    waiting: collections.deque[tuple[Any, int]]
    size: int = 0


class MessageTurns(Generic[Message]):
    """Messages that wait, each peer's in the order they came. One thread's.

    :param part: how many messages of one peer may be in work.
    :param kept: how many of one peer may wait.
    :param kept_bytes: how large these may be together, unless it is one.
    :param wake: called when next() may have a message again, perhaps more
        than once; on any thread.
    """

    def __init__(
        self, part: int, kept: int, kept_bytes: int, wake: Callable[[], None]
    ) -> None:
        self._part = part
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._wake = wake
        # Those heard longest ago first.
        self._peers: collections.OrderedDict[str | bytes, _Peer] = (
            collections.OrderedDict()
        )
        self._ring: collections.deque[_Peer] = collections.deque()

    def __bool__(self) -> bool:
        return bool(self._ring)

    def has_room(self, name: str | bytes, size: int) -> bool:
        """Tell whether one more message of a peer may wait.

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
        """Let a message wait for its turn."""
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = _Peer(
                Credit(self._part, self._wake), collections.deque()
            )
            if len(self._peers) > _MOST_PEERS:
                self._peers.popitem(last=False)
        else:
            self._peers.move_to_end(name)
        if not peer.waiting:
            self._ring.append(peer)
        peer.waiting.append((message, size))
        peer.size += size

    def next(self) -> tuple[Message, Credit] | None:
        """The message whose turn it is, and where it counts as in work.

        :returns: None if there is none, or only of peers that have their
            part in work.
        """
        for _ in range(len(self._ring)):
            peer = self._ring.popleft()
            if not self._may_go_on(peer):
                self._ring.append(peer)
                continue
            message, size = peer.waiting.popleft()
            peer.size -= size
            if peer.waiting:
                self._ring.append(peer)
            return message, peer.credit
        return None

    def _may_go_on(self, peer: _Peer) -> bool:
        credit = peer.credit
        if not credit.is_awaited and credit.left() > 0:
            return True
        credit.is_awaited = True
        # Perhaps it was served just before anybody knew that we wait.
        credit.is_awaited = not credit.has_half()
        return not credit.is_awaited
