# SPDX-License-Identifier: Apache-2.0

"""What a host's messages say time and again, so that it is checked once."""

import dataclasses
import itertools
import operator
from typing import Any
from typing import NamedTuple

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import fields
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import tables
from nova_fairness.model import node
from nova_fairness.model import resources

VERSION = 3
"""Changes when an older node would misread a message. A field that an older
node can do without is added without a change; it ignores it."""


class Known(NamedTuple):
    """All of a message but the numbers of its users and of its round.

    :ivar written: as it stands in the message, see ``_LASTING``.
    :ivar resources: what the host has.
    :ivar order: where each of our resources stands in the sender's order.
    :ivar ids: of its users.
    :ivar desired: the newest that the sender knows; ``None`` if nothing.
    :ivar most: what the amounts of its users may add up to.
    :ivar size: of the numbers of its users, bytes, where they may be read
        together with those of others; otherwise -1.
    """

    written: tuple[Any, ...]
    resources: node.NodeResources
    order: list[int]
    ids: tuple[str, ...]
    desired: desired_module.Desired | None
    most: tables.Most
    size: int


_LASTING = operator.itemgetter(
    'version',
    'host',
    'boot_id',
    'metric',
    'speed_factor',
    'cpus',
    'resources',
    'capacity',
    'users',
    'desired',
)
"""Almost always what they were in the host's last message. Comparing them
costs far less than checking them."""


def read(
    given: fields.Fields, before: Known | None, limits: bounds.Bounds
) -> Known:
    """Check it, unless it is what the host's last message said.

    :param before: what that was; the time it takes is all that differs.
    :raises ReportRefused: naming what was wrong and what was expected.
    """
    if before is not None and is_unchanged(given, before):
        return before
    written = given.all_of(_LASTING)
    check_version(given.given('version'))
    host = given.text('host', limits.max_text)
    given.text('boot_id', limits.max_text)
    given.text('metric', limits.max_text)
    order = _order(given, limits)
    what = node.NodeResources(
        host=host,
        cpus=_cpus(given, limits),
        speed_factor=given.number('speed_factor', 1e-6, 1e12),
        capacity=_capacity(given, host, order, limits),
    )
    ids = _ids(given, limits)
    if before is not None and ids == before.ids:
        ids = before.ids  # kept once
    desired = _desired(given.given('desired'), limits)
    # Nothing is kept of what we do not read.
    told = None if desired is None else dataclasses.asdict(desired)
    written = (*written[:-1], told)
    is_plain = order == tables.OURS and len(ids) > 0
    return Known(
        written,
        what,
        order,
        ids,
        desired,
        tables.Most(what, limits),
        len(ids) * tables.ROW_BYTES if is_plain else -1,
    )


def is_unchanged(given: fields.Fields, before: Known) -> bool:
    """Tell whether a message says what the host's last one said.

    :raises ReportRefused: if a field is missing.
    """
    return given.all_of(_LASTING) == before.written


def check_version(version: object) -> None:
    """Let only our own version pass.

    :raises ReportRefused: if it is another one.
    """
    if type(version) is not int or version != VERSION:
        raise exception.ReportRefused(
            'version',
            f'the report has version {fields.shown(version)}; expected '
            f'{VERSION}',
        )


def _cpus(given: fields.Fields, limits: bounds.Bounds) -> tuple[int, ...]:
    ends = given.items('cpus', {int}, 2 * limits.max_cpus)
    ascending = all(
        low <= high if place % 2 == 0 else low < high
        for place, (low, high) in enumerate(itertools.pairwise(ends))
    )
    if (
        not ends
        or len(ends) % 2
        or not ascending
        or not 0 <= ends[0] <= ends[-1] < limits.max_cpus
    ):
        raise exception.ReportRefused(
            'malformed',
            'the report: cpus must be first and last of one or more runs, '
            f'ascending, below {limits.max_cpus}',
        )
    runs = map(range, ends[::2], (last + 1 for last in ends[1::2]))
    return tuple(itertools.chain.from_iterable(runs))


def _ids(given: fields.Fields, limits: bounds.Bounds) -> tuple[str, ...]:
    found = given.items('users', {str}, limits.max_users)
    longest = max(map(len, found), default=0)
    if longest > limits.max_text or not ''.join(found).isprintable():
        raise exception.ReportRefused(
            'malformed',
            f'the report: an id of a user has {longest} characters or some '
            f'that cannot be printed; expected at most {limits.max_text}',
        )
    if not all(map(operator.lt, found, found[1:])):
        raise exception.ReportRefused(
            'malformed', 'the report: users must be ascending, each once'
        )
    return tuple(found)


def _order(given: fields.Fields, limits: bounds.Bounds) -> list[int]:
    """Say where each of our resources stands in the sender's order."""
    names = given.items('resources', {str}, limits.max_text)
    ours = resources.RESOURCES.names
    if len(names) != len(ours) or set(names) != set(ours):
        strange = fields.shown(', '.join(sorted(set(names) - set(ours))))
        missing = ', '.join(sorted(set(ours) - set(names)))
        raise exception.ReportRefused(
            'resources',
            f'the report counts {len(names)} resources, unknown here: '
            f'{strange}, missing: {missing or "none"}; expected '
            f'{", ".join(ours)}',
        )
    return [names.index(name) for name in ours]


def _capacity(
    given: fields.Fields, host: str, order: list[int], limits: bounds.Bounds
) -> resources.Vector:
    numbers = given.items('capacity', {int, float}, len(order))
    if len(numbers) != len(order):
        raise exception.ReportRefused(
            'malformed',
            f'the report: capacity has {len(numbers)} numbers; expected '
            f'{len(order)}',
        )
    believed, option = limits.capacity_of(host)
    for name, place, largest in zip(
        resources.RESOURCES.names,
        order,
        # Python's own floats compare with whole numbers of any size.
        believed.tolist(),
        strict=True,
    ):
        if not 0 <= numbers[place] <= largest:
            raise exception.ReportRefused(
                'bounds',
                f'{host} says that its capacity of {name} is '
                f'{fields.shown(numbers[place])}; expected 0 to {largest:g} '
                f'([fairness_exchange] {option})',
            )
    return np.array([numbers[place] for place in order], dtype=np.float64)


def _desired(
    value: object, limits: bounds.Bounds
) -> desired_module.Desired | None:
    if value is None:
        return None
    return desired_module.read(value, limits.max_text)
