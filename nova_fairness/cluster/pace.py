# SPDX-License-Identifier: Apache-2.0

"""Limits of each kind of work in a cycle, and the order of projects in it.

During a cycle, the service holds a lock and the lease, and other threads wait
for its end. Therefore each kind of work pauses after some units or some time,
and continues in the next cycle. Projects take turns, so that a project with
much work does not delay a project with little work.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from typing import TypeVar

_Item = TypeVar('_Item')


class WorkBudget:
    """Remaining units of work and remaining time of one kind of work in a
    cycle.

    :param most: number of units of work, >= 0.
    :param most_s: duration of the work, seconds, >= 0.
    :param monotonic: returns monotonic time, seconds.
    """

    def __init__(
        self, most: int, most_s: float, monotonic: Callable[[], float]
    ) -> None:
        self._left = most
        self._monotonic = monotonic
        self._end_s = monotonic() + most_s

    @property
    def left(self) -> int:
        """Return the remaining units; 0 after the time has ended."""
        return max(self._left, 0) if self.is_in_time else 0

    @property
    def is_in_time(self) -> bool:
        """Whether time remains, regardless of the remaining units."""
        return self._monotonic() <= self._end_s

    def take(self, units: int = 1) -> bool:
        """Consume some units. Returns ``False`` if none remain.

        The last call may consume more units than remain, so that a piece of
        work that is larger than the budget is done.
        """
        if not self.left:
            return False
        self._left -= units
        return True


def interleave_by_owner(
    items: Iterable[_Item], whose: Callable[[_Item], str], turn: int = 0
) -> list[_Item]:
    """Return the items sorted so that owners take turns: the first item of
    each owner, then the second of each, and so on.

    :param items: items; the order of those of one owner is kept.
    :param whose: returns the owner of an item.
    :param turn: number that selects the owner that is first.
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
