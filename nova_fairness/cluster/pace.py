# SPDX-License-Identifier: Apache-2.0

"""Limits of how much of one kind of work a cycle does, and in which order.

A cycle holds a lock and the lease, and others wait for its end. So each kind
of work ends after some of it, or after some time, and goes on in the next
cycle. Projects take turns: one with much to do delays none that has little.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from typing import TypeVar

_Item = TypeVar('_Item')


class WorkBudget:
    """Work and time that are left.

    :param most: units of work, >= 0.
    :param most_s: seconds, >= 0.
    :param monotonic: seconds that never go back.
    """

    def __init__(
        self, most: int, most_s: float, monotonic: Callable[[], float]
    ) -> None:
        self._left = most
        self._monotonic = monotonic
        self._end_s = monotonic() + most_s

    @property
    def left(self) -> int:
        """Units that may still be done; 0 when the time is over."""
        return max(self._left, 0) if self.is_in_time else 0

    @property
    def is_in_time(self) -> bool:
        """Whether time is left, whatever units are."""
        return self._monotonic() <= self._end_s

    def take(self, units: int = 1) -> bool:
        """Take some units; ``False`` if none are left.

        The last ones may be more than are left, so that large pieces of work
        are done at all.
        """
        if not self.left:
            return False
        self._left -= units
        return True


def in_turn(
    items: Iterable[_Item], whose: Callable[[_Item], str], turn: int = 0
) -> list[_Item]:
    """One of each owner, then the second of each, and so on.

    :param items: those of one owner stay in their order.
    :param whose: names the owner.
    :param turn: another number lets another owner be first.
    """
    queues: dict[str, collections.deque[_Item]] = {}
    for each in items:
        queues.setdefault(whose(each), collections.deque()).append(each)
    waiting = collections.deque(queues.values())
    if waiting:
        waiting.rotate(-(turn % len(waiting)))
    ordered = []
    while waiting:
        queue = waiting.popleft()
        ordered.append(queue.popleft())
        if queue:
            waiting.append(queue)
    return ordered
