# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-sim reproduce``: what the manual claims, made again."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import sys
from typing import Any

from fairness_lab.evidence import claims
from fairness_lab.evidence import reproduction
from fairness_lab.figures import progress
from fairness_lab.measures import files
from nova_fairness.model import wording

Json = dict[str, Any]


def reproduce(options: argparse.Namespace) -> int:
    """List claims, or run their commands and compare.

    :returns: 0 if every claim that was run holds, and one was run; else 1.
    """
    evidence = claims.read()
    chosen = evidence.chosen(options.names)
    if options.list:
        sys.stdout.write(_listed(evidence, chosen))
        return 0
    meter = progress.BatchProgress()
    with files.new_directory(options.out) as directory:
        meter.begin('claims', len({each.command for each in chosen}))
        try:
            found = reproduction.reproduce(
                chosen, directory, options.within, options.seeds, meter
            )
        finally:
            meter.end()
        rows = [each.content() for each in found]
        content = {'version': reproduction.VERSION, 'claims': rows}
        files.write_json(directory / 'reproduction.json', content)
    sys.stdout.write(f'{_table(rows)}{_reasons(rows)}{options.out}\n')
    ran = {each.outcome for each in found} - {
        reproduction.ClaimOutcome.NOT_RUN
    }
    return int(ran != {reproduction.ClaimOutcome.HOLDS})


def _listed(
    evidence: claims.DeclaredClaims, chosen: Sequence[claims.Claim]
) -> str:
    """All that is known of claims before they are run."""
    lines = [
        f'{name}  {title}\n'
        for name, title in evidence.documents.items()
        if any(each.document == name for each in chosen)
    ]
    for each in chosen:
        cost = f'needs {each.needs}' if each.needs else f'{each.cost_s:g} s'
        lines.append(
            f'\n{each.name} ({cost})\n'
            f'    {each.says}\n'
            f'    tolerance {each.within:g}: {each.because}\n'
            f'    benchmarks/results/{each.file}\n'
            f'    {each.command}\n'
        )
    return ''.join(lines)


def _table(rows: Sequence[Json]) -> str:
    """One line for each number."""
    cells = [
        {'claim': each['claim'], **_cells(each['outcome'], number)}
        for each in rows
        for number in each['numbers']
    ]
    seen = {key for each in cells for key, text in each.items() if text}
    titles = [key for key in cells[0] if key in seen]
    lines = [titles, *([each[key] for key in titles] for each in cells)]
    words = ('claim', 'of', 'holds', 'beside published')
    return wording.format_table(lines, [key not in words for key in titles])


def _cells(outcome: str, number: Mapping[str, Any]) -> dict[str, str]:
    over = number['over_seeds'] or {}
    best = over.get('best_in')
    answer = {True: 'yes', False: 'no'}.get(number['holds'], outcome)
    return {
        'of': str(number['of']),
        'published': _shown(number['published']),
        'declared': _shown(number['declared']),
        'recorded': _shown(number['recorded']),
        'reproduced': _shown(number['reproduced']),
        'holds': answer,
        'beside published': number['verdict'],
        'over seeds': f'{_shown(over["least"])} to {_shown(over["most"])}'
        if over
        else '',
        'best in': '' if best is None else f'{best} of {over["seeds"]}',
    }


def _shown(number: float | None) -> str:
    return '' if number is None else f'{number:.6g}'


def _reasons(rows: Sequence[Json]) -> str:
    return ''.join(
        f'{each["claim"]}: {each["outcome"]}: {each["why"]}\n'
        for each in rows
        if each['why']
    )
