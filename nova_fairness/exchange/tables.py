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

"""The totals of a node's users as one block of numbers, and back.

A block is (u, 2 + 2r) float64 in little-endian order, written in base64:
heaviness, number of VMs, endowment and usage by resource. Reading it makes no
object per user but its id.
"""

import base64
import binascii
import operator

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import bounds
from nova_fairness.exchange import fields
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources

_FIRST = 2
"""Columns before the resources."""

_ENDOWED = 1.001
"""Endowments on a node add up to its supply at most; rounding aside."""

_HUGE = 1e300

_SCALES: list[bool] = resources.RESOURCES.time_shared.tolist()


def numbers(table: report.UserTable) -> resources.Vector:
    """Put everything but the ids side by side: (u, 2 + 2r)."""
    return np.column_stack(
        (
            table.instance_heaviness,
            table.instances,
            table.endowment,
            table.usage,
        )
    ).astype('<f8')


def text(block: resources.Vector) -> str:
    """Write a block as text."""
    return base64.b64encode(block.tobytes()).decode('ascii')


def read(
    given: fields.Fields,
    order: list[int],
    what: node.NodeResources,
    interval_s: float,
    limits: bounds.Bounds,
) -> report.UserTable:
    """Read the users of a message, and check what they got.

    Endowments divide the node, so they cannot exceed it. Usage can: a page
    cache and traffic between VMs are faster than disk and network.

    :param order: where each of our resources stands in the sender's order.
    :param what: the sender has.
    :param interval_s: of the amounts.
    :raises ReportRefused: naming what was wrong and what was expected.
    """
    ids = _ids(given, limits)
    middle = _FIRST + len(order)
    block = _block(given.given('table'), len(ids), middle + len(order))
    # Where the orders agree, as they do almost always, nothing is moved.
    if order != list(range(len(order))):
        endowed = [_FIRST + place for place in order]
        used = [middle + place for place in order]
        block = block[:, [*range(_FIRST), *endowed, *used]]
    if ids:
        _check(block, what, interval_s, limits)
    return report.UserTable(
        ids=tuple(ids),
        instance_heaviness=block[:, 0],
        endowment=block[:, _FIRST:middle],
        usage=block[:, middle:],
        instances=block[:, 1].astype(np.int64),
    )


def _check(
    block: resources.Vector,
    what: node.NodeResources,
    interval_s: float,
    limits: bounds.Bounds,
) -> None:
    # On a table of few users each call of numpy costs more than its work: so
    # there are few calls, and what they give is looked at without it.
    lows: list[float] = np.minimum.reduce(block, axis=0).tolist()
    highs: list[float] = np.maximum.reduce(block, axis=0).tolist()
    _check_finite(lows, highs)
    _check_heaviness(what.host, max(highs[0], -lows[0]), limits)
    _check_instances(block[:, 1], lows[1], highs[1], limits)
    sums: list[float] = np.add.reduce(block, axis=0).tolist()
    middle = _FIRST + len(resources.RESOURCES)
    for name, columns, rates in (
        ('endowment', slice(_FIRST, middle), what.capacity),
        ('usage', slice(middle, None), limits.capacity),
    ):
        if min(lows[columns]) < 0:
            raise exception.ReportRefused(
                'bounds', f'{what.host}: {name} must not be negative'
            )
        most = [
            rate * (interval_s if scales else 1.0) * _ENDOWED
            for rate, scales in zip(rates.tolist(), _SCALES, strict=True)
        ]
        _check_sums(what.host, name, sums[columns], most)


def _check_finite(lows: list[float], highs: list[float]) -> None:
    # What is none is neither, and comes out of both ends. Smaller ones can be
    # added up without becoming infinite.
    if not (
        all(low > -_HUGE for low in lows)
        and all(high < _HUGE for high in highs)
    ):
        raise exception.ReportRefused(
            'malformed',
            'the report: table must hold finite numbers of magnitudes '
            f'below {_HUGE:g}',
        )


def _check_heaviness(
    host: str, heaviest: float, limits: bounds.Bounds
) -> None:
    if heaviest > limits.max_heaviness:
        raise exception.ReportRefused(
            'bounds',
            f'{host} says that a user is heavier than '
            f'{limits.max_heaviness:g} ([fairness_exchange] '
            'max_peer_heaviness)',
        )


def _check_instances(
    counted: resources.Vector,
    fewest: float,
    most: float,
    limits: bounds.Bounds,
) -> None:
    largest = limits.max_instances
    if not (
        fewest >= 1
        and most <= largest
        and (counted.astype(np.int64) == counted).all()
    ):
        raise exception.ReportRefused(
            'bounds',
            'the report: a number of VMs is no whole number from 1 to '
            f'{largest}',
        )


def _check_sums(
    host: str, name: str, sums: list[float], most: list[float]
) -> None:
    for resource, total, bound in zip(
        resources.RESOURCES.names, sums, most, strict=True
    ):
        if total > bound:
            raise exception.ReportRefused(
                'bounds',
                f'{host}: {name} of {resource} is {total:g} in all; '
                f'expected at most {bound:g}',
            )


def _ids(given: fields.Fields, limits: bounds.Bounds) -> list[str]:
    ids = given.items('users', {str}, limits.max_users)
    longest = max(map(len, ids), default=0)
    if longest > limits.max_text or not ''.join(ids).isprintable():
        raise exception.ReportRefused(
            'malformed',
            f'the report: an id of a user has {longest} characters or some '
            f'that cannot be printed; expected at most {limits.max_text}',
        )
    if not all(map(operator.lt, ids, ids[1:])):
        raise exception.ReportRefused(
            'malformed', 'the report: users must be ascending, each once'
        )
    return ids


def _block(written: object, rows: int, columns: int) -> resources.Vector:
    size = rows * columns * 8
    wanted = 4 * -(-size // 3)
    if type(written) is not str or len(written) != wanted:
        raise exception.ReportRefused(
            'malformed',
            f'the report: table must be {wanted} characters of base64 for '
            f'{rows} users, got {fields.shown(written)}',
        )
    try:
        octets = base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError) as error:
        raise exception.ReportRefused(
            'malformed', f'the report: table is no base64: {error}'
        ) from error
    if len(octets) != size:
        raise exception.ReportRefused(
            'malformed',
            f'the report: table holds {len(octets)} bytes; expected {size}',
        )
    block = np.frombuffer(octets, dtype='<f8').reshape(rows, columns)
    return block.astype(np.float64, copy=False)
