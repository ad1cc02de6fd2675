# SPDX-License-Identifier: Apache-2.0

"""Results of several seeds: means, how far they spread, and differences."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from fairness_lab.measures import paired
from nova_fairness import version

VERSION = 1
"""Of ``spread.json``: changes when a reader of the old would be misled."""

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """A number of each result.

    :ivar group: of ``result.json``.
    :ivar key: in that group.
    :ivar better: ``less`` or ``more``.
    """

    group: str
    key: str
    better: str


MEASURES: Mapping[str, Measure] = {
    'share_error': Measure('share_error', 'mean', 'less'),
    'share_error_wanting': Measure('share_error_wanting', 'mean', 'less'),
    'utilisation': Measure('utilisation', 'settled_mean', 'more'),
    'jain': Measure('jain', 'mean', 'more'),
    'wait_mean_s': Measure('waiting', 'mean_s', 'less'),
    'wait_p95_s': Measure('waiting', 'p95_s', 'less'),
    'wait_longest_s': Measure('waiting', 'longest_s', 'less'),
    'expired': Measure('waiting', 'expired', 'less'),
    'servers_left': Measure('made_room', 'servers', 'less'),
    'work_lost': Measure('made_room', 'lost_part', 'less'),
    'follows_share': Measure('made_room', 'follows_share', 'more'),
}
"""All numbers that are compared, by name."""

BETTER = {name: each.better for name, each in MEASURES.items()}

_DIGITS = 6


def of_cloud(runs: Mapping[str, Sequence[Json]]) -> Json:
    """Compare runs of one cloud with the first of them.

    :param runs: results of each, one for each seed, by name; the seeds of
        all are the same.
    :returns: an entry of ``clouds`` of ``spread.json``.
    """
    reference = next(iter(runs))
    first = runs[reference]
    return {
        'scenario': first[0]['scenario'],
        'seeds': [result['seed'] for result in first],
        'reference': reference,
        'runs': [
            {
                'name': name,
                'order': results[0]['order'],
                'victims': results[0]['victims'],
                'measures': {
                    measure: measured(
                        values(measure, results),
                        None if results is first else values(measure, first),
                        each.better,
                    )
                    for measure, each in MEASURES.items()
                    if results[0].get(each.group) is not None
                },
            }
            for name, results in runs.items()
        ],
    }


def content(clouds: Sequence[Json], command: str) -> Json:
    """Content of ``spread.json``.

    :param clouds: each of :func:`of_cloud`.
    :param command: that makes it in ``OUT``.
    """
    return {
        'version': VERSION,
        'command': command,
        'package_version': version.release(),
        'confidence': paired.CONFIDENCE,
        'better': BETTER,
        'clouds': clouds,
    }


def measured(
    numbers: Sequence[float | None],
    reference: Sequence[float | None] | None,
    better: str,
) -> Json:
    """Mean, deviation and difference of one measure.

    :param numbers: one for each seed.
    :param reference: those that they are compared with; ``None`` for the
        reference itself.
    :param better: ``less`` or ``more``.
    """
    found = [each for each in numbers if each is not None]
    is_whole = len(found) == len(numbers)
    has_spread = is_whole and len(found) >= paired.FEWEST
    return {
        'values': numbers,
        'mean': _rounded(statistics.fmean(found)) if is_whole else None,
        'sd': _rounded(statistics.stdev(found)) if has_spread else None,
        'difference': (
            None
            if reference is None
            else _compared(numbers, reference, better)
        ),
    }


def _compared(
    numbers: Sequence[float | None],
    reference: Sequence[float | None],
    better: str,
) -> Json | None:
    ours = [each for each in numbers if each is not None]
    theirs = [each for each in reference if each is not None]
    if not paired.FEWEST <= len(ours) == len(theirs) == len(numbers):
        return None
    found = paired.difference(ours, theirs)
    verdict = 'noise'
    if not found.is_noise:
        is_less = found.mean < 0
        verdict = 'better' if is_less == (better == 'less') else 'worse'
    return {
        'mean': _rounded(found.mean),
        'low': _rounded(found.low),
        'high': _rounded(found.high),
        'verdict': verdict,
    }


def values(measure: str, results: Sequence[Json]) -> list[float | None]:
    """Numbers of results, to six digits; ``None`` where there is none."""
    where = MEASURES[measure]
    found = [(each.get(where.group) or {}).get(where.key) for each in results]
    return [None if each is None else _rounded(each) for each in found]


def _rounded(number: float) -> float:
    """Six digits, so that records are short and rounding is no difference."""
    return float(f'{number:.{_DIGITS}g}')
