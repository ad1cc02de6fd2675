# SPDX-License-Identifier: Apache-2.0

"""Numbers that the manual claims, with their commands and tolerances."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import functools
import json
import math
import pathlib
from typing import Any

import yaml

from nova_fairness import exception

Label = str | int

LABEL = '$'
"""Stands for the label of a number in the steps that lead to it."""

_SAME = 1e-9
"""Part by which equal numbers may differ: that of rounding."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """Numbers of one kind, made by one command.

    :ivar name: of the document and the claim.
    :ivar says: what the numbers are, a sentence.
    :ivar page: of the manual, such as ``reference/evaluation``.
    :ivar told: how that page tells a number, a format of ``label``,
        ``value`` and ``percent``.
    :ivar file: recorded result, below ``benchmarks/results``.
    :ivar command: that makes it in ``OUT``.
    :ivar made: file that the command writes below ``OUT``.
    :ivar at: steps from the top of the file to a number: a key, or values
        that a row has; ``$`` is the label.
    :ivar recorded: number by label, declared to be that of ``file``.
    :ivar within: largest difference that still holds.
    :ivar because: reason of that.
    :ivar cost_s: CPU time of the command, seconds, when it was recorded.
    :ivar needs: what the command needs besides a simulator; empty for
        nothing.
    :ivar seed: of the recorded run, if the command takes ``--seed``.
    :ivar published: number of the document by label.
    :ivar better: ``less`` or ``more``; empty if neither is.
    :ivar differs: why the document's number is of something else; empty if
        it is not.
    """

    name: str
    says: str
    page: str
    told: str
    file: str
    command: str
    made: str
    at: Sequence[Any]
    recorded: Mapping[Label, float]
    within: float
    because: str
    cost_s: float
    needs: str = ''
    seed: int | None = None
    published: Mapping[Label, float] = dataclasses.field(default_factory=dict)
    better: str = ''
    differs: str = ''

    @property
    def document(self) -> str:
        """The first part of the name."""
        return self.name.partition('-')[0]

    def numbers(self, path: pathlib.Path) -> dict[Label, float]:
        """Numbers of a result by label.

        :param path: of a file of JSON or CSV.
        :raises SimError: if one is missing.
        """
        found = _read(path)
        try:
            return {each: self._number(found, each) for each in self.recorded}
        except (KeyError, ValueError, TypeError) as error:
            raise exception.SimError(
                f'{path.name} has no number of {self.name}: {error}'
            ) from error

    def _number(self, content: Any, label: Label) -> float:
        for step in self.at:
            if isinstance(step, dict):
                wanted = {
                    key: label if value == LABEL else value
                    for key, value in step.items()
                }
                [content] = [
                    row for row in content if wanted.items() <= row.items()
                ]
            else:
                content = content[label if step == LABEL else step]
        return float(content)

    def holds(self, label: Label, number: float) -> bool:
        """Whether a number equals the declared one, within the tolerance.

        The edge belongs to the tolerance, also where rounding puts it
        beyond: 0.8 is 0.1 from 0.7.
        """
        declared = self.recorded[label]
        rounding = _SAME * max(abs(declared), self.within)
        return abs(number - declared) <= self.within + rounding

    def is_on_record(self, label: Label, number: float) -> bool:
        """Whether a number of a recorded result is the declared one."""
        return math.isclose(number, self.recorded[label], rel_tol=_SAME)

    def verdict(self, label: Label, number: float) -> str:
        """Compare a number with the published one, in a word.

        :returns: ``equal``, ``better``, ``worse`` or ``not comparable``; empty
            if the document has no number for this label.
        """
        published = self.published.get(label)
        if published is None:
            return ''
        if self.differs:
            return 'not comparable'
        if number == published:
            return 'equal'
        is_less = number < published
        return 'better' if is_less == (self.better == 'less') else 'worse'


@dataclasses.dataclass(frozen=True)
class DeclaredClaims:
    """All that is claimed.

    :ivar documents: title by the first part of names.
    :ivar claims: in the order of the file.
    """

    documents: Mapping[str, str]
    claims: Sequence[Claim]

    def chosen(self, names: Sequence[str]) -> list[Claim]:
        """Claims by name or document; all of them without names.

        :raises UnknownParameter: if there is no such name.
        """
        known = [*self.documents, *(each.name for each in self.claims)]
        for name in names:
            if name not in known:
                raise exception.UnknownParameter(
                    f'there is no claim {name!r}; there are {", ".join(known)}'
                )
        return [
            each
            for each in self.claims
            if not names or {each.name, each.document} & {*names}
        ]


@functools.cache
def read() -> DeclaredClaims:
    """Read ``claims.yaml``, once."""
    path = pathlib.Path(__file__).with_name('claims.yaml')
    found = yaml.safe_load(path.read_text('utf-8'))
    return DeclaredClaims(
        found['documents'],
        [
            Claim(name=name, **declared)
            for name, declared in found['claims'].items()
        ],
    )


def _read(path: pathlib.Path) -> Any:
    """Content of JSON; rows of CSV, whose numbers are numbers."""
    try:
        text = path.read_text('utf-8')
        if path.suffix == '.json':
            return json.loads(text)
    except (OSError, ValueError) as error:
        raise exception.SimError(f'{path} cannot be read: {error}') from error
    return [*csv.DictReader(text.splitlines())]
