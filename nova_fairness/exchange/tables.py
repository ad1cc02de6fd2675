# SPDX-License-Identifier: Apache-2.0

"""The totals of a node's users as one block of numbers, and back.

A block is (u, 2 + 3r + 2g) float64 in little-endian order: heaviness, number
of VMs, endowment, usage and what is wanted by resource, vCPUs of each grade
and what these want; in base64 where the transport carries nothing but JSON.
Reading it makes no object per user but its id.
"""

import base64
import binascii
from collections.abc import Iterator
from collections.abc import Sequence
import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness import exception
from nova_fairness.exchange import limits as bounds
from nova_fairness.model import node
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import wording

FIRST = 2
"""Columns before the resources."""

_ENDOWED = 1.001
"""Endowments on a node add up to its supply at most, and what VMs want that
are not steered to what all want; rounding aside."""

WRITTEN = np.dtype('<f8')

OURS = list(range(len(resources.RESOURCES)))
"""The order of resources in which nothing has to be moved."""

KINDS = 3
"""Of amounts: endowment, usage, wanted."""

AMOUNTS = FIRST + KINDS * len(resources.RESOURCES)
"""Columns up to the grades."""

COLUMNS = AMOUNTS + 2 * report.GRADES

ROW_BYTES = COLUMNS * WRITTEN.itemsize

SCALES = np.tile(resources.RESOURCES.time_shared, KINDS)
"""Whether an amount grows with the interval, by column after the first."""


def numbers(table: report.UserTable) -> resources.Vector:
    """Join all columns but the ids to one array, (u, 2 + 3r + 2g).

    Grades of vCPUs are 0 if the table has none.
    """
    untold = np.zeros((len(table), 2 * report.GRADES))
    return np.column_stack(
        (
            table.instance_heaviness,
            table.instances,
            table.endowment,
            table.usage,
            table.usage if table.wanted is None else table.wanted,
            untold if table.grades is None else table.grades,
        )
    ).astype(WRITTEN)


def text(block: resources.Vector) -> str:
    """Write a block as text."""
    return base64.b64encode(block.tobytes()).decode('ascii')


class Most:
    """Upper bounds of the numbers of a node's users.

    Endowments divide the node, so they cannot exceed it. Usage can: a page
    cache and traffic between VMs are faster than disk and network. Wants have
    no bound: their readers know what nodes have.

    :param what: the sender has.
    :param limits: what is believed.
    :ivar rates: (3r,) what amounts may add up to, per second where
        time-shared; as it is in memory.
    """

    __slots__ = ('_fixed', '_host', '_limits', '_scaled', 'rates')

    def __init__(
        self, what: node.NodeResources, limits: bounds.Bounds
    ) -> None:
        endless = np.full(len(what.capacity), np.inf)
        rates = np.concatenate((what.capacity, limits.capacity, endless))
        rates *= _ENDOWED
        self.rates = rates.tobytes()
        self._scaled = np.where(SCALES, rates, 0.0)
        self._fixed = np.where(SCALES, 0.0, rates)
        self._host = what.host
        self._limits = limits

    def check(self, block: resources.Vector, interval_s: float) -> None:
        """Check all numbers of a node's users.

        :param block: in our order of resources, one row at least.
        :param interval_s: of the amounts.
        :raises ReportRefused: naming what was wrong and what was expected.
        """
        lows, highs = self._limits.columns
        most = self._scaled * interval_s + self._fixed
        # What is no number is neither. All at once: of a table of few users
        # each call of numpy costs more than its work.
        if (
            _all((block >= lows) & (block <= highs))
            and _all(np.add.reduce(block, axis=0)[FIRST:AMOUNTS] <= most)
            and _is_whole(block[:, 1])
        ):
            return
        self._refuse(block, most.tolist())

    def _refuse(self, block: resources.Vector, most: list[float]) -> None:
        """Say what is wrong."""
        lows: list[float] = np.minimum.reduce(block, axis=0).tolist()
        highs: list[float] = np.maximum.reduce(block, axis=0).tolist()
        _check_finite(lows, highs)
        _check_heaviness(self._host, max(highs[0], -lows[0]), self._limits)
        _check_instances(block[:, 1], lows[1], highs[1])
        sums: list[float] = np.add.reduce(block, axis=0).tolist()[
            FIRST:AMOUNTS
        ]
        width = len(resources.RESOURCES)
        for name, part in (
            ('endowment', slice(None, width)),
            ('usage', slice(width, 2 * width)),
            ('wanted', slice(2 * width, None)),
        ):
            if min(lows[FIRST:AMOUNTS][part]) < 0:
                raise exception.ReportRefused(
                    'bounds', f'{self._host}: {name} must not be negative'
                )
            _check_sums(self._host, name, sums[part], most[part])
        _check_grades(self._host, min(lows[AMOUNTS:]), max(highs[AMOUNTS:]))


def read(
    written: object,
    ids: tuple[str, ...],
    order: list[int],
    most: Most,
    interval_s: float,
) -> report.UserTable:
    """Table of a node's users, of numbers that are checked here.

    :param written: what came as text.
    :param ids: of the users.
    :param order: where each of our resources stands in the sender's order.
    :param most: what the numbers may be.
    :param interval_s: of the amounts.
    :raises ReportRefused: naming what was wrong and what was expected.
    """
    block = _block(written, len(ids), COLUMNS, 'table')
    # Where the orders agree, as they do almost always, nothing is moved.
    if order != OURS:
        moved = [
            FIRST + kind * len(order) + place
            for kind in range(KINDS)
            for place in order
        ]
        grades = range(AMOUNTS, COLUMNS)
        block = block[:, [*range(FIRST), *moved, *grades]]
    if ids:
        most.check(block, interval_s)
    return made(ids, block)


def with_exempt(
    table: report.UserTable, written: object, host: str
) -> report.UserTable:
    """Add what is of VMs that are not steered.

    :param written: (u, 2g) as it came.
    :raises ReportRefused: naming what was wrong and what was expected.
    """
    left = _block(written, len(table), 2 * report.GRADES, 'exempt')
    most = table.grades
    if most is None or not _all((left >= 0) & (left <= most * _ENDOWED)):
        raise exception.ReportRefused(
            'bounds',
            f'{host}: exempt must be from 0 to the grades of the table',
        )
    return report.UserTable(
        table.ids,
        table.instance_heaviness,
        table.endowment,
        table.usage,
        table.instances,
        table.wanted,
        table.grades,
        left,
    )


def made(ids: tuple[str, ...], block: resources.Vector) -> report.UserTable:
    """Make a table of numbers that were checked, in our order."""
    used, wanted = (FIRST + kind * len(OURS) for kind in (1, 2))
    return report.UserTable(
        ids,
        block[:, 0],
        block[:, FIRST:used],
        block[:, used:wanted],
        block[:, 1].astype(np.int64),
        block[:, wanted:AMOUNTS],
        block[:, AMOUNTS:],
    )


def _is_whole(numbers: resources.Vector) -> bool:
    return _all(numbers.astype(np.int64) == numbers)


def _all(flags: npt.NDArray[np.bool_]) -> bool:
    # Half of what flags.all() takes.
    return b'\0' not in flags.tobytes()


def _check_finite(lows: list[float], highs: list[float]) -> None:
    # What is none is neither, and comes out of both ends. Smaller ones can be
    # added up without becoming infinite.
    if not (
        all(low > -bounds.HUGE for low in lows)
        and all(high < bounds.HUGE for high in highs)
    ):
        raise exception.ReportRefused(
            'malformed',
            'the report: table must hold finite numbers of magnitudes '
            f'below {bounds.HUGE:g}',
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
) -> None:
    largest = bounds.MOST_INSTANCES
    if not (fewest >= 1 and most <= largest and _is_whole(counted)):
        raise exception.ReportRefused(
            'bounds',
            'the report: a number of VMs is no whole number from 1 to '
            f'{largest}',
        )


def _check_grades(host: str, least: float, most: float) -> None:
    if not 0 <= least <= most <= bounds.MOST_VCPUS:
        raise exception.ReportRefused(
            'bounds',
            f'{host}: grades must be vCPUs from 0 to {bounds.MOST_VCPUS:g}',
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


def _block(
    written: object, rows: int, columns: int, name: str
) -> resources.Vector:
    size = rows * columns * WRITTEN.itemsize
    octets = (
        written if type(written) is bytes else _octets(written, size, name)
    )
    if len(octets) != size:
        raise exception.ReportRefused(
            'malformed',
            f'the report: {name} holds {len(octets)} bytes; expected {size} '
            f'for {wording.counted(rows, "user")}',
        )
    block = np.frombuffer(octets, WRITTEN).reshape(rows, columns)
    return block.astype(np.float64, copy=False)


def _octets(written: object, size: int, name: str) -> bytes:
    wanted = 4 * -(-size // 3)
    if type(written) is not str or len(written) != wanted:
        raise exception.ReportRefused(
            'malformed',
            f'the report: {name} must be {size} bytes or {wanted} characters '
            f'of base64, got {type(written).__name__}',
        )
    try:
        return binascii.a2b_base64(written, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise exception.ReportRefused(
            'malformed', f'the report: {name} is no base64: {error}'
        ) from error


_ROWS = 50_000
"""Of users, that are put together at a time; about 6 MB."""


class UnreadNumbers(NamedTuple):
    """Numbers of the users of one node that are not read yet.

    :ivar octets: a block, one row at least, in our order of resources.
    :ivar ids: of the users, one for each row.
    :ivar most: what the numbers may be.
    :ivar interval_s: of the amounts.
    """

    octets: bytes
    ids: tuple[str, ...]
    most: Most
    interval_s: float


def read_together(
    all_of: Sequence[UnreadNumbers], limits: bounds.Bounds
) -> Iterator[report.UserTable | exception.ReportRefused]:
    """Tables of the users of some nodes, checked at once.

    Of a table of few users each call of numpy costs more than its work. So
    the tables are put one below the other; only if something is wrong
    somewhere, each is checked by itself, to name whose it is.

    :param limits: what is believed.
    :returns: the table of each, or what is wrong with it.
    """
    for portion in _portions(all_of):
        are_good = _are_good(portion, limits)
        for each in portion:
            yield _table_of(each) if are_good else _checked_alone(each)


def _portions(
    all_of: Sequence[UnreadNumbers],
) -> Iterator[list[UnreadNumbers]]:
    portion: list[UnreadNumbers] = []
    rows = 0
    for each in all_of:
        if portion and rows + len(each.ids) > _ROWS:
            yield portion
            portion, rows = [], 0
        portion.append(each)
        rows += len(each.ids)
    if portion:
        yield portion


def _are_good(portion: list[UnreadNumbers], limits: bounds.Bounds) -> bool:
    block = np.frombuffer(
        b''.join([each.octets for each in portion]), WRITTEN
    ).reshape(-1, COLUMNS)
    lows, highs = limits.columns
    # What is no number is neither, and comes out of both.
    if not (
        (np.minimum.reduce(block) >= lows).all()
        and (np.maximum.reduce(block) <= highs).all()
    ):
        return False
    counted = block[:, 1]
    if not (counted.astype(np.int64) == counted).all():
        return False
    rows = [len(each.ids) for each in portion]
    starts = list(itertools.accumulate(rows[:-1], initial=0))
    sums = np.add.reduceat(block, starts)[:, FIRST:AMOUNTS]
    return bool((sums <= _most(portion)).all())


def _most(portion: list[UnreadNumbers]) -> resources.Vector:
    """Upper bounds of the sums of each node's amounts: (n, 3r)."""
    rates = np.frombuffer(b''.join([each.most.rates for each in portion]))
    intervals = np.array([[each.interval_s] for each in portion])
    scales = np.where(SCALES, intervals, 1.0)
    return scales * rates.reshape(scales.shape)


def _table_of(each: UnreadNumbers) -> report.UserTable:
    # Of its own memory: kept, a part of the common block would keep it all.
    block = np.frombuffer(each.octets, WRITTEN).reshape(-1, COLUMNS)
    return made(each.ids, block.astype(np.float64, copy=False))


def _checked_alone(
    each: UnreadNumbers,
) -> report.UserTable | exception.ReportRefused:
    try:
        return read(each.octets, each.ids, OURS, each.most, each.interval_s)
    except exception.ReportRefused as refused:
        return refused
