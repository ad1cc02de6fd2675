# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A report as a message of JSON primitives, and back.

The names of the resources are sent once, so that a node with another order
understands them, and one with other resources refuses them by name.
"""

import dataclasses
import itertools
from typing import Any
from typing import NamedTuple

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import bounds
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import fields
from nova_fairness.exchange import tables
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

VERSION = 1
"""Changes when an older node would misread a message. A field that an older
node can do without is added without a change; it ignores it."""

LARGEST_SEQUENCE = 2**53 - 1
"""Every number up to it is exact in JSON."""

_SHORTEST_INTERVAL_S = 0.01

Message = dict[str, Any]


class Decoded(NamedTuple):
    """What a message says.

    :ivar report: of the sender.
    :ivar desired: the newest that the sender knows; ``None`` if nothing.
    """

    report: report.NodeReport
    desired: desired_module.Desired | None


def encode(
    node_report: report.NodeReport,
    desired: desired_module.Desired | None = None,
) -> Message:
    """Write a report as JSON primitives.

    :raises ExchangeError: if a number is not finite.
    """
    table = report.UserTable.of(node_report.users)
    what = node_report.resources
    numbers = tables.numbers(table)
    if not (np.isfinite(numbers).all() and np.isfinite(what.capacity).all()):
        raise exception.ExchangeError(
            f'the report of {node_report.host} holds a number that is not '
            'finite'
        )
    return {
        'version': VERSION,
        'host': node_report.host,
        'boot_id': node_report.boot_id,
        'sequence': node_report.sequence,
        'interval_s': node_report.interval_s,
        'metric': node_report.metric,
        'cpus': _ranges(what.cpus),
        'speed_factor': what.speed_factor,
        'resources': list(resources.RESOURCES.names),
        'capacity': what.capacity.tolist(),
        'users': list(table.ids),
        'table': tables.text(numbers),
        'desired': _told(desired),
    }


def decode(message: object, limits: bounds.Bounds) -> Decoded:
    """Read a message of which nothing is believed.

    :raises ReportRefused: naming what was wrong and what was expected. Its
        reason is ``version``, ``malformed``, ``resources`` or ``bounds``.
    """
    given = fields.Fields(message, 'the report')
    _check_version(given.given('version'))
    host = given.text('host', limits.max_text)
    interval_s = given.number(
        'interval_s', _SHORTEST_INTERVAL_S, limits.max_interval_s
    )
    order = _order(given, limits)
    what = node.NodeResources(
        host=host,
        cpus=_cpus(given, limits),
        speed_factor=given.number('speed_factor', 1e-6, 1e12),
        capacity=_capacity(given, host, order, limits),
    )
    table = tables.read(given, order, what, interval_s, limits)
    return Decoded(
        report.NodeReport(
            host=host,
            boot_id=given.text('boot_id', limits.max_text),
            sequence=given.integer('sequence', 0, LARGEST_SEQUENCE),
            interval_s=interval_s,
            metric=given.text('metric', limits.max_text),
            resources=what,
            users=table,
        ),
        _desired(given.given('desired'), limits),
    )


def claimed_host(message: object, limits: bounds.Bounds) -> str:
    """Give the name under which a message was sent, empty if it has none."""
    try:
        return fields.Fields(message, '').text('host', limits.max_text)
    except exception.ReportRefused:
        return ''


def _check_version(version: object) -> None:
    if type(version) is not int or version != VERSION:
        raise exception.ReportRefused(
            'version',
            f'the report has version {fields.shown(version)}; expected '
            f'{VERSION}',
        )


def _ranges(numbers: tuple[int, ...]) -> list[int]:
    """Write ascending numbers as first and last of each run."""
    runs = itertools.groupby(
        enumerate(numbers), key=lambda pair: pair[1] - pair[0]
    )
    members = ([number for _, number in run] for _, run in runs)
    return [end for run in members for end in (run[0], run[-1])]


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
    for name, place, largest in zip(
        resources.RESOURCES.names,
        order,
        # Python's own floats compare with whole numbers of any size.
        limits.capacity.tolist(),
        strict=True,
    ):
        if not 0 <= numbers[place] <= largest:
            raise exception.ReportRefused(
                'bounds',
                f'{host} says that its capacity of {name} is '
                f'{fields.shown(numbers[place])}; expected 0 to {largest:g} '
                '([fairness_exchange] max_peer_capacity)',
            )
    return np.array([numbers[place] for place in order], dtype=np.float64)


def _told(desired: desired_module.Desired | None) -> Message | None:
    return None if desired is None else dataclasses.asdict(desired)


def _desired(
    value: object, limits: bounds.Bounds
) -> desired_module.Desired | None:
    if value is None:
        return None
    return desired_module.read(value, limits.max_text)
