# SPDX-License-Identifier: Apache-2.0

"""One thing that a scenario must show."""

from collections.abc import Mapping
import dataclasses
from typing import Any

Result = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One criterion and what was measured.

    :ivar name: stable identifier.
    :ivar says: what must hold, for people.
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
        """Give the check as it stands in ``result.json``."""
        return {**dataclasses.asdict(self), 'passed': self.passed}
