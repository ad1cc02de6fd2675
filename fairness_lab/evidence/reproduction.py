# SPDX-License-Identifier: Apache-2.0

"""Runs the commands of claims again, and compares what they make."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import operator
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any
from typing import Protocol

from fairness_lab.evidence import claims
from nova_fairness import exception

VERSION = 1
"""Of ``reproduction.json``: changes when a reader of the old is misled."""

OUT = 'OUT'
"""The directory that a command writes, as claims write it."""

Json = dict[str, Any]
Numbers = Mapping[claims.Label, float]

_TOP = pathlib.Path(__file__).resolve().parents[2]
_RECORDS = _TOP / 'benchmarks' / 'results'
"""Of a checkout of the source; an installed package has none."""

_PROGRAMS: Mapping[str, Sequence[str]] = {
    'nova-fairness-sim': (sys.executable, '-m', 'fairness_lab.cmd.sim'),
    'python': (sys.executable,),
}
"""Commands that start programs with the very code that runs here."""


class ClaimOutcome(enum.StrEnum):
    """Outcome of the attempt to make a claim again."""

    HOLDS = 'holds'
    DIFFERS = 'differs'
    FAILED = 'failed'
    NOT_RUN = 'not run'


class Meter(Protocol):
    """Is told how many commands are done."""

    def tick(self, done: int) -> None:
        """Take note of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reproduced:
    """A claim beside what its command made now.

    :ivar claim: it.
    :ivar outcome: of it.
    :ivar why: a sentence, if it does not hold.
    :ivar numbers: by label, if something can be compared.
    :ivar on_record: those of the result file, in a checkout of the source.
    :ivar took_s: wall-clock time of the command, seconds.
    :ivar seeds: numbers of each seed that was tried, that of the claim first.
    """

    claim: claims.Claim
    outcome: ClaimOutcome
    why: str = ''
    numbers: Numbers = dataclasses.field(default_factory=dict)
    on_record: Numbers = dataclasses.field(default_factory=dict)
    took_s: float = 0.0
    seeds: Sequence[Numbers] = ()

    def content(self) -> Json:
        """For ``reproduction.json``."""
        claim = self.claim
        return {
            'claim': claim.name,
            'says': claim.says,
            'page': claim.page,
            'command': claim.command,
            'recorded_in': f'benchmarks/results/{claim.file}',
            'tolerance': claim.within,
            'because': claim.because,
            'outcome': self.outcome.value,
            'why': self.why,
            'took_s': round(self.took_s, 1),
            'numbers': [self._row(label) for label in claim.recorded],
        }

    def _row(self, label: claims.Label) -> Json:
        claim, number = self.claim, self.numbers.get(label)
        return {
            'of': label,
            'published': claim.published.get(label),
            'declared': claim.recorded[label],
            'recorded': self.on_record.get(label),
            'reproduced': number,
            'holds': None if number is None else self.holds(label),
            'verdict': '' if number is None else claim.verdict(label, number),
            'over_seeds': self._over_seeds(label),
        }

    def holds(self, label: claims.Label) -> bool:
        """Whether the declared, the recorded and the new number agree."""
        on_record = self.on_record.get(label)
        return self.claim.holds(label, self.numbers[label]) and (
            on_record is None or self.claim.is_on_record(label, on_record)
        )

    def difference(self, label: claims.Label) -> str:
        """A number that does not hold, beside those it should be."""
        on_record = self.on_record.get(label)
        recorded = '' if on_record is None else f', recorded {on_record:.12g}'
        return (
            f'{label}: declared {self.claim.recorded[label]:.12g}{recorded},'
            f' reproduced {self.numbers[label]:.12g}'
        )

    def _over_seeds(self, label: claims.Label) -> Json | None:
        """Spread of a number, and how often it is the best of its claim."""
        if len(self.seeds) < 2:
            return None
        found = [each[label] for each in self.seeds]
        best = {'less': min, 'more': max}.get(self.claim.better)
        firsts = [best(each.values()) for each in self.seeds] if best else []
        return {
            'seeds': len(found),
            'mean': statistics.fmean(found),
            'least': min(found),
            'most': max(found),
            'best_in': sum(map(operator.eq, found, firsts)) if best else None,
        }


def reproduce(
    chosen: Sequence[claims.Claim],
    directory: pathlib.Path,
    within_s: float,
    seeds: int,
    meter: Meter,
) -> list[Reproduced]:
    """Run commands one after the other, each once, the quickest first.

    :param directory: that exists; each command gets a directory below.
    :param within_s: seconds that all of them may take; those that are
        expected to take longer than is left are not run.
    :param seeds: that are tried of claims that have one.
    """
    until_s = time.monotonic() + within_s
    commands: dict[str, list[claims.Claim]] = {}
    for each in sorted(chosen, key=lambda each: each.cost_s):
        commands.setdefault(each.command, []).append(each)
    found: dict[str, Reproduced] = {}
    for done, group in enumerate(commands.values(), 1):
        place = directory / group[0].name
        for made in _tried(group, place, until_s):
            found[made.claim.name] = _with_seeds(made, place, until_s, seeds)
        meter.tick(done)
    return [found[each.name] for each in chosen]


def _tried(
    group: Sequence[claims.Claim], place: pathlib.Path, until_s: float
) -> Iterator[Reproduced]:
    """Run the command of some claims, if it can be run in time."""
    begun_s = time.monotonic()
    if why := _hindrance(group[0], until_s - begun_s):
        yield from (Reproduced(e, ClaimOutcome.NOT_RUN, why) for e in group)
        return
    why = _run(group[0].command, place, until_s - begun_s)
    took_s = time.monotonic() - begun_s
    for each in group:
        outcome = ClaimOutcome.FAILED if why else ClaimOutcome.HOLDS
        made = Reproduced(each, outcome, why, took_s=took_s)
        yield made if why else _compared(made, place)


def _with_seeds(
    made: Reproduced, place: pathlib.Path, until_s: float, seeds: int
) -> Reproduced:
    """Run the command with the next seeds, as long as there is time."""
    claim, found = made.claim, [made.numbers]
    if claim.seed is None or not made.numbers:
        return made
    for seed in range(claim.seed + 1, claim.seed + seeds):
        left_s = until_s - time.monotonic()
        there = place.with_name(f'{place.name}-seed-{seed}')
        if claim.cost_s > left_s:
            break
        if not there.exists():
            _run(f'{claim.command} --seed {seed}', there, left_s)
        other = _compared(made, there)
        if other.outcome is ClaimOutcome.FAILED:
            break
        found.append(other.numbers)
    return dataclasses.replace(made, seeds=found)


def _hindrance(claim: claims.Claim, left_s: float) -> str:
    """Why a command cannot be run; empty if it can."""
    if claim.needs:
        return f'it needs {claim.needs}'
    if 'benchmarks.' in claim.command and not (_TOP / 'benchmarks').is_dir():
        return 'it needs a checkout of the source'
    if claim.cost_s > left_s:
        return f'it takes about {claim.cost_s:.0f} s, {left_s:.0f} s are left'
    return ''


def _run(command: str, place: pathlib.Path, left_s: float) -> str:
    """Run a command in a directory of its own; say why if it fails."""
    (place / OUT).mkdir(parents=True)
    program, *arguments = shlex.split(command)
    paths = [str(_TOP), *filter(None, [os.environ.get('PYTHONPATH')])]
    with (place / 'output.txt').open('w', encoding='utf-8') as output:
        try:
            code = subprocess.run(
                [*_PROGRAMS[program], *arguments],
                cwd=place,
                env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=left_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            shutil.rmtree(place / OUT, ignore_errors=True)
            return f'it was ended after {left_s:.0f} s'
    if code:
        return f'exit code {code}, see {place.name}/output.txt'
    return ''


def _compared(made: Reproduced, place: pathlib.Path) -> Reproduced:
    """A claim whose command is done, with its numbers."""
    claim = made.claim
    try:
        numbers = claim.numbers(place / OUT / claim.made)
        on_record = (
            claim.numbers(_RECORDS / claim.file) if _RECORDS.is_dir() else {}
        )
    except exception.SimError as error:
        return dataclasses.replace(
            made, outcome=ClaimOutcome.FAILED, why=str(error)
        )
    found = dataclasses.replace(made, numbers=numbers, on_record=on_record)
    wrong = [each for each in numbers if not found.holds(each)]
    return dataclasses.replace(
        found,
        outcome=ClaimOutcome.DIFFERS if wrong else ClaimOutcome.HOLDS,
        why='; '.join(map(found.difference, wrong)),
    )
