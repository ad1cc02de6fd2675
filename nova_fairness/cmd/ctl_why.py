# SPDX-License-Identifier: Apache-2.0

"""Why a VM gets what it gets, for a terminal."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

Answers = Mapping[str, Any]

TITLES = (
    'HOST',
    'RESOURCE',
    'HEAVINESS',
    'USES',
    'ENDOWED',
    'OWNER USES',
    'QUOTA',
    'CONTENDED',
    'WAITS',
)


def rows(answers: Answers) -> list[list[Any]]:
    """A row for each resource."""
    return [
        [host, *_row(said['instance'], name)]
        for host, said in answers.items()
        for name in _names(said['instance'])
    ]


def _names(vm: Mapping[str, Any]) -> list[str]:
    return list(vm['usage'] or vm['heaviness']['by_resource'])


def _row(vm: Mapping[str, Any], name: str) -> list[Any]:
    return [
        name,
        vm['heaviness']['by_resource'].get(name),
        *(
            _short(vm[amounts].get(name))
            for amounts in ('usage', 'endowment', 'owner_usage', 'quota')
        ),
        name in vm['contended'],
        name in vm['waiting'],
    ]


def _short(amount: float | None) -> str | None:
    """Write an amount with a unit that keeps it short."""
    if amount is None:
        return None
    for step, letter in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if amount >= step:
            return f'{amount / step:.2f}{letter}'
    return f'{amount:.2f}'


def after(answers: Answers) -> Iterator[str]:
    """Lines below the table."""
    for host, said in answers.items():
        vm = said['instance']
        total = vm['heaviness']['total']
        yield (
            f'{vm["name"]} of {vm["user_id"]} in {vm["project_id"]} on '
            f'{host}: heaviness {"-" if total is None else f"{total:.3f}"} '
            f'({vm["metric"]})'
        )
        if vm['weights']:
            yield 'weights: ' + ' '.join(
                f'{name}={weight:.3f}'
                for name, weight in vm['weights'].items()
            )
        yield from vm['advice']
