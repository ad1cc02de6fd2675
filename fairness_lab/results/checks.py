# SPDX-License-Identifier: Apache-2.0

"""Expectations of a scenario for a run, and their outcomes.

An expectation names one of :data:`.kinds.KINDS`, names the subjects, and
gives bounds.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from fairness_lab.results import kinds

Result = kinds.Result
Names = kinds.Names


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One criterion and what was measured.

    :ivar name: stable identifier.
    :ivar says: what is measured, for people.
    :ivar measured: the value; ``None`` if there was nothing to measure,
        which never passes.
    :ivar lowest: smallest value that passes; ``None`` for no bound.
    :ivar highest: largest value that passes; ``None`` for no bound.
    """

    name: str
    says: str
    measured: float | None
    lowest: float | None = None
    highest: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the measured value is within the bounds."""
        if self.measured is None:
            return False
        above = self.lowest is None or self.measured >= self.lowest
        return above and (
            self.highest is None or self.measured <= self.highest
        )

    def to_json(self) -> dict[str, Any]:
        """The check as it stands in ``result.json``."""
        return {**dataclasses.asdict(self), 'passed': self.passed}


@dataclasses.dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects runs; an empty field or ``None`` excludes no run.

    :ivar agents: with or without agents.
    :ivar metric: names of metrics; a run without agents has none.
    :ivar policy: names of policies; a run without agents has none.
    :ivar interval_at_least: seconds of a round.
    """

    agents: bool | None = None
    metric: Names = ()
    policy: Names = ()
    interval_at_least: float = 0.0

    def includes(self, result: Result) -> bool:
        """Whether the filter matches a run."""
        steered = result['agents']
        return bool(
            self.agents in {None, steered}
            and _matches(self.metric, steered and result['metric'])
            and _matches(self.policy, steered and result['policy'])
            and result['interval_s'] >= self.interval_at_least
        )


def _matches(names: Names, name: str | bool) -> bool:
    return not names or name in names


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation of a scenario for its runs.

    :ivar check: key of :data:`.kinds.KINDS`.
    :ivar name: of the check in the results; where there can be several, the
        VM, user, node or number follows.
    :ivar of: names of those that are judged; empty: all.
    :ivar to: names of VMs with which the one of ``of`` is compared.
    :ivar at_least: smallest value that passes, or ``None``.
    :ivar at_most: largest value that passes, or ``None``.
    :ivar around: a number, or a word of :attr:`.kinds.Kind.around`, around
        which the value must be; ``None`` if there is none.
    :ivar within: largest distance from ``around``, >= 0; ``None`` without.
    :ivar when: runs that are judged.
    :ivar unless: runs out of these that are not; ``None`` for no such runs.
    """

    check: str
    name: str
    of: Names = ()
    to: Names = ()
    at_least: float | None = None
    at_most: float | None = None
    around: str | float | None = None
    within: float | None = None
    when: RunFilter = RunFilter()
    unless: RunFilter | None = None

    def bounds(
        self, result: Result, subject: str, of: Names
    ) -> tuple[float | None, float | None]:
        """Smallest and largest value that pass; ``None``: no bound."""
        if self.around is None or self.within is None:
            return self.at_least, self.at_most
        if isinstance(self.around, str):
            middle = kinds.KINDS[self.check].around[self.around](
                result, subject, of
            )
        else:
            middle = self.around
        return middle - self.within, middle + self.within


def from_json(content: Mapping[str, Any]) -> Expectation:
    """Create an expectation from its entry in ``meta.json``."""
    runs = {
        key: value and RunFilter(**_lists_as_tuples(value))
        for key in ('when', 'unless')
        if (value := content[key]) is not None
    }
    return Expectation(**{**_lists_as_tuples(content), **runs})


def _lists_as_tuples(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in content.items()
    }


def evaluate(
    result: Result, expectations: Iterable[Expectation]
) -> tuple[Check, ...]:
    """Check whether a run meets the expectations of its scenario.

    :param result: what :func:`fairness_lab.results.result.build` returned.
    """
    return tuple(
        check
        for expected in expectations
        if expected.when.includes(result)
        and not (expected.unless and expected.unless.includes(result))
        for check in _checks(result, expected)
    )


def _checks(result: Result, expected: Expectation) -> Iterator[Check]:
    kind = kinds.KINDS[expected.check]
    found = tuple(kind.measure(result, expected.of, expected.to))
    of = tuple(item.subject for item in found)
    for item in found:
        lone = len(expected.to or expected.of) == 1 or not item.subject
        name = expected.name if lone else f'{expected.name}-{item.subject}'
        says = kind.says.format(item.says or item.subject)
        if item.value is None and isinstance(expected.around, str):
            yield Check(name, says, None)
        else:
            bounds = expected.bounds(result, item.subject, of)
            yield Check(name, says, item.value, *bounds)
