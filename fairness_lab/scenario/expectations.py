# SPDX-License-Identifier: Apache-2.0

"""Read the expectations of a scenario file for its runs."""

from collections.abc import Mapping
import math

from fairness_lab.results import checks
from fairness_lab.results import kinds
from fairness_lab.scenario import yaml
from nova_fairness import exception

Value = yaml.YamlValue
Members = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By ``vms``, ``users`` and ``nodes``: names in a scenario, and the members
that each stands for."""


def expectations(
    value: Value, members: Members
) -> tuple[checks.Expectation, ...]:
    """Read the expectations of a scenario.

    :raises BadScenario: with file, line and what was expected.
    """
    return tuple(_expectation(item, members) for item in value.items())


def _expectation(value: Value, members: Members) -> checks.Expectation:
    section = value.section()
    check = section.need('check', lambda v: v.one_of(tuple(kinds.KINDS)))
    kind = kinds.KINDS[check]
    found = checks.Expectation(
        check=check,
        name=section.take('name', Value.name, check),
        of=section.take('of', lambda v: _names(v, kind.who, members), ()),
        to=section.take(
            'to',
            lambda v: _names(v, kind.who if kind.compares else '', members),
            (),
        ),
        at_least=section.take('at_least', _read_number, None),
        at_most=section.take('at_most', _read_number, None),
        around=section.take('around', lambda v: _read_around(v, kind), None),
        within=section.take('within', _read_distance, None),
        when=section.take('when', _read_run_filter, checks.RunFilter()),
        unless=section.take('unless', _read_run_filter, None),
    )
    section.finish()
    _check(value, kind, found)
    return found


def _check(
    value: Value, kind: kinds.ExpectationKind, found: checks.Expectation
) -> None:
    bounds = (found.at_least, found.at_most)
    relative = found.around is not None
    if relative is (found.within is None):
        raise value.wrong('"around" and "within" together')
    if relative is (bounds != (None, None)):
        raise value.wrong(
            'either "at_least" or "at_most", or both, or "around" and "within"'
        )
    if kind.compares and not (len(found.of) == 1 and found.to):
        raise value.wrong('one VM as "of", and VMs as "to"')


def _names(value: Value, who: str, members: Members) -> tuple[str, ...]:
    """Read the names that a check is about: one, or a list."""
    if not who:
        raise value.wrong('no such key with this check')
    items = value.items() if value.is_list() else [value]
    known = members[who]
    return tuple(
        name for item in items for name in known[item.one_of(tuple(known))]
    )


def _read_number(value: Value) -> float | None:
    return value.number(-math.inf)


def _read_distance(value: Value) -> float | None:
    return value.number()


def _read_around(
    value: Value, kind: kinds.ExpectationKind
) -> str | float | None:
    if value.node.value in kind.around:
        return value.text()
    try:
        return value.number(-math.inf)
    except exception.BadScenario:
        words = ', '.join([*kind.around, 'a number'])
        raise value.wrong(f'one of {words}') from None


def _read_run_filter(value: Value) -> checks.RunFilter:
    section = value.section()
    found = checks.RunFilter(
        agents=section.take('agents', _read_agents, None),
        metric=section.take('metric', _read_words, ()),
        policy=section.take('policy', _read_words, ()),
        interval_at_least=section.take(
            'interval_at_least', Value.positive, 0.0
        ),
    )
    section.finish()
    return found


def _read_agents(value: Value) -> bool | None:
    return value.yes_or_no()


def _read_words(value: Value) -> tuple[str, ...]:
    items = value.items() if value.is_list() else [value]
    return tuple(item.text() for item in items)
