# SPDX-License-Identifier: Apache-2.0

"""Finds which of many inputs make something fail, with bounded work.

Code that works on all inputs at once, such as a planner, cannot say on which
one it failed. So it is run on halves of them, and on halves of those halves
that fail alone. A single culprit is found with about as much work as two runs
on all. Where both halves work alone and fail together, the search finds the
last input that the others cannot be with.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar('T')

Fails = Callable[[Sequence[T]], bool]
"""Whether it fails on some of the inputs."""


class SearchBudget:
    """Work that a search may do.

    :param tries: how often it may be tried, at most.
    :param monotonic: seconds that never go back.
    :param until_s: of that clock, after which nothing more is tried.
    """

    def __init__(
        self, tries: int, monotonic: Callable[[], float], until_s: float
    ) -> None:
        self._tries = tries
        self._monotonic = monotonic
        self._until_s = until_s

    def take(self) -> bool:
        """Whether one more may be tried."""
        self._tries -= 1
        return self._tries >= 0 and self._monotonic() < self._until_s

    def is_spent(self) -> bool:
        """Whether nothing more may be tried."""
        return self._tries <= 0 or self._monotonic() >= self._until_s


def find(
    items: Sequence[T], fails: Fails[T], budget: SearchBudget
) -> tuple[list[T], list[T]]:
    """Find the inputs that make a work fail.

    :param items: inputs with which it fails; without all of them it works.
    :param fails: tries the work with some inputs.
    :param budget: of tries.
    :returns: culprits; and inputs that may be culprits too, because the
        budget was too small.
    """
    if len(items) <= 1:
        return list(items), []
    if budget.is_spent():
        return [], list(items)
    middle = len(items) // 2
    blamed: list[T] = []
    unsure: list[T] = []
    fail_alone = False
    for half in (items[:middle], items[middle:]):
        if not budget.take():
            unsure += half
            fail_alone = True
        elif fails(half):
            fail_alone = True
            more, left = find(half, fails, budget)
            blamed += more
            unsure += left
    if not fail_alone:
        last, is_sure = _last_of_prefix(items, middle, fails, budget)
        (blamed if is_sure else unsure).extend(last)
    known = {id(each) for each in (*blamed, *unsure)}
    rest = [each for each in items if id(each) not in known]
    if rest and budget.take() and fails(rest):
        more, left = find(rest, fails, budget)
        return blamed + more, unsure + left
    # With no try left it is not known whether the rest works.
    return blamed, unsure + (rest if budget.is_spent() else [])


def _last_of_prefix(
    items: Sequence[T], works: int, fails: Fails[T], budget: SearchBudget
) -> tuple[Sequence[T], bool]:
    """The last of the fewest first inputs on which it fails.

    :param works: number of first ones on which it does not fail.
    :returns: among which it is, and whether it is known which one.
    """
    broken = len(items)
    while broken - works > 1:
        if not budget.take():
            return items[works:broken], False
        middle = (works + broken) // 2
        if fails(items[:middle]):
            broken = middle
        else:
            works = middle
    return items[broken - 1 : broken], True
