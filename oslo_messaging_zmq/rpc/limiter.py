# SPDX-License-Identifier: Apache-2.0

"""How many messages are taken of one peer."""

import collections
from collections.abc import Callable
import time

BURST_S = 10.0
"""So many seconds' worth may come at once."""

_MOST_PEERS = 10_000
_SIZE = 64 * 1024
"""Bytes of a message that count as one message more."""


class Limiter:
    """Counts messages of each peer, before they are decoded.

    A bucket per peer fills with time and empties with messages. One thread's.

    :param rate: messages per second on average; 0: any number.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self, rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_S)
        self._clock = clock
        # What is left, and when: by peer, the one heard longest ago first.
        self._buckets: collections.OrderedDict[
            str | bytes, tuple[float, float]
        ] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def admits(self, peer: str | bytes, size: int) -> bool:
        """Tell whether one more message may be taken, and count it if so.

        A message that is larger than all that may come at once is taken of
        somebody who was quiet for that long.

        :param peer: its name, or that of its connection.
        :param size: of the message, bytes.
        """
        rate = self._rate
        if not rate:
            return True
        now_s = self._clock()
        most = self._most
        bucket = self._buckets.get(peer)
        left = most
        if bucket is not None:
            left = min(most, bucket[0] + (now_s - bucket[1]) * rate)
        else:
            self._make_room()
        cost = min(most, 1.0 + size // _SIZE)
        is_admitted = left >= cost
        self._buckets[peer] = left - cost * is_admitted, now_s
        self._buckets.move_to_end(peer)
        return is_admitted

    def _make_room(self) -> None:
        """Forget who was heard longest ago: with time its bucket is full."""
        if len(self._buckets) >= _MOST_PEERS:
            self._buckets.popitem(last=False)
