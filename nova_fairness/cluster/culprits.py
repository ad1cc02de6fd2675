# SPDX-License-Identifier: Apache-2.0

"""Search for the inputs, among many, that make a function fail, with limited
work.

The error of a function that processes all inputs at once, such as a planner,
does not tell which input caused it. Therefore the function runs on each half
of the inputs, and on halves of each half that fails alone. A single culprit
costs about as much work as two runs on all inputs. If both halves succeed
alone and fail together, the search finds the last input that fails together
with the inputs before it.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar('T')

Fails = Callable[[Sequence[T]], bool]
"""Whether the function fails on the given inputs."""


class SearchBudget:
    """Number of runs and time that a search may use.

    :param tries: largest number of runs of the function.
    :param monotonic: returns monotonic time, seconds.
    :param until_s: monotonic time after which no further run starts.
    """

    def __init__(
        self, tries: int, monotonic: Callable[[], float], until_s: float
    ) -> None:
        self._tries = tries
        self._monotonic = monotonic
        self._until_s = until_s

    def take(self) -> bool:
        """Count one more run. Returns whether it is allowed."""
        self._tries -= 1
        return self._tries >= 0 and self._monotonic() < self._until_s

    def is_spent(self) -> bool:
        """Whether no further run is allowed."""
        return self._tries <= 0 or self._monotonic() >= self._until_s


def find_culprits(
    items: Sequence[T], fails: Fails[T], budget: SearchBudget
) -> tuple[list[T], list[T]]:
    """Find the inputs that make a function fail.

    :param items: inputs on which the function fails; it succeeds without any
        input.
    :param fails: runs the function on some inputs, and returns whether it
        fails.
    :param budget: remaining number of runs and remaining time.
    :returns: the culprits; and inputs that may be culprits, because the budget
        was too small.
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
            more, left = find_culprits(half, fails, budget)
            blamed += more
            unsure += left
    if not fail_alone:
        last, is_sure = _last_of_prefix(items, middle, fails, budget)
        (blamed if is_sure else unsure).extend(last)
    known = {id(each) for each in (*blamed, *unsure)}
    rest = [each for each in items if id(each) not in known]
    if rest and budget.take() and fails(rest):
        more, left = find_culprits(rest, fails, budget)
        return blamed + more, unsure + left
    # Without a remaining try it is unknown whether the rest succeeds.
    return blamed, unsure + (rest if budget.is_spent() else [])


def _last_of_prefix(
    items: Sequence[T], works: int, fails: Fails[T], budget: SearchBudget
) -> tuple[Sequence[T], bool]:
    """Find the last input of the shortest prefix on which the function fails.

    :param works: length of a prefix on which the function succeeds.
    :returns: inputs that contain the culprit, and whether it is a single
        input.
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
