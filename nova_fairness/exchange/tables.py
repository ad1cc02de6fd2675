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
import numpy.typing as npt

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
    given: fields.Fields, order: list[int], limits: bounds.Bounds
) -> report.UserTable:
    """Read the users of a message.

    :param order: where each of our resources stands in the sender's order.
    :raises ReportRefused: naming what was wrong and what was expected.
    """
    ids = _ids(given, limits)
    count = len(order)
    block = _block(given.given('table'), len(ids), _FIRST + 2 * count)
    endowment = block[:, _FIRST : _FIRST + count]
    usage = block[:, _FIRST + count :]
    # Where the orders agree, as they do almost always, slices are views.
    if order != list(range(count)):
        endowment, usage = endowment[:, order], usage[:, order]
    return report.UserTable(
        ids=tuple(ids),
        instance_heaviness=block[:, 0],
        endowment=endowment,
        usage=usage,
        instances=_instances(block[:, 1], limits),
    )


def check_amounts(
    table: report.UserTable,
    what: node.NodeResources,
    interval_s: float,
    limits: bounds.Bounds,
) -> None:
    """Check the amounts of a node's users against what can be true.

    Endowments divide the node, so they cannot exceed it. Usage can: a page
    cache and traffic between VMs are faster than disk and network.

    :raises ReportRefused: naming what was wrong and what was expected.
    """
    if not len(table):
        return
    heaviest = max(
        table.instance_heaviness.max(), -table.instance_heaviness.min()
    )
    if heaviest > limits.max_heaviness:
        raise exception.ReportRefused(
            'bounds',
            f'{what.host} says that a user is heavier than '
            f'{limits.max_heaviness:g} ([fairness_exchange] '
            'max_peer_heaviness)',
        )
    _check(what.host, 'endowment', table.endowment, what.capacity, interval_s)
    _check(what.host, 'usage', table.usage, limits.capacity, interval_s)


def _check(
    host: str,
    name: str,
    amounts: resources.Vector,
    rates: resources.Vector,
    interval_s: float,
) -> None:
    if amounts.min() < 0:
        raise exception.ReportRefused(
            'bounds', f'{host}: {name} must not be negative'
        )
    most = resources.RESOURCES.over(rates, interval_s) * _ENDOWED
    sums = np.add.reduce(amounts, axis=0)
    if (sums > most).any():
        place = int(np.argmax(sums > most))
        raise exception.ReportRefused(
            'bounds',
            f'{host}: {name} of {resources.RESOURCES.names[place]} is '
            f'{sums[place]:g} in all; expected at most {most[place]:g}',
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
    # Smaller ones can be added up without becoming infinite.
    if not (np.abs(block) < _HUGE).all():
        raise exception.ReportRefused(
            'malformed',
            'the report: table must hold finite numbers of magnitudes '
            f'below {_HUGE:g}',
        )
    return block.astype(np.float64, copy=False)


def _instances(
    counted: resources.Vector, limits: bounds.Bounds
) -> npt.NDArray[np.int64]:
    most = limits.max_instances
    if len(counted) and not (
        counted.min() >= 1
        and counted.max() <= most
        and (np.floor(counted) == counted).all()
    ):
        raise exception.ReportRefused(
            'bounds',
            f'the report: a number of VMs is no whole number from 1 to {most}',
        )
    return counted.astype(np.int64)
