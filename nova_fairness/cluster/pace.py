# SPDX-License-Identifier: Apache-2.0

"""Limits of each kind of work in a cycle, and its order by project.

A cycle holds a lock and the lease, and others wait for its end. So each kind
of work pauses after some units or some time, and continues in the next cycle.
Projects take turns: a project with much work does not delay one with little.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from typing import TypeVar

_Item = TypeVar('_Item')


class WorkBudget:
    """Remaining units of work and remaining time.

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
        """Remaining units; 0 when the time is over."""
        return max(self._left, 0) if self.is_in_time else 0

    @property
    def is_in_time(self) -> bool:
        """Whether time remains, however many units remain."""
        return self._monotonic() <= self._end_s

    def take(self, units: int = 1) -> bool:
        """Take some units; ``False`` if none remain.

        The last call may take more than remain, so that a large piece of work
        is done at all.
        """
        if not self.left:
            return False
        self._left -= units
        return True


def in_turn(
    items: Iterable[_Item], whose: Callable[[_Item], str], turn: int = 0
) -> list[_Item]:
    """Items in turns: the first of each owner, then the second of each, and so
    on.

    :param items: items; those of one owner stay in their order.
    :param whose: returns the owner of an item.
    :param turn: the owner that comes first changes with this number.
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
