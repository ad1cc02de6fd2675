# SPDX-License-Identifier: Apache-2.0

"""The totals of a node's users as one block of numbers, and back.

A block is (u, 2 + 3r + 2g) float64 in little-endian order: heaviness, number
of VMs, endowment, usage and want by resource, vCPUs of each grade and the CPUs
that they want; in base64 where the transport supports JSON only. Reading it
creates no object per user except its id.
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

FIRST_COLUMN = 2
"""Number of columns before the resources."""

_ROUNDING = 1.001
"""Factor for rounding errors. The endowments on a node add up to at most
its supply, and the wants of exempt VMs to at most the wants of all."""

NUMBER_TYPE = np.dtype('<f8')

OUR_POSITIONS = list(range(len(resources.RESOURCES)))
"""Positions of the resources if the sender has the same sequence."""

KINDS = 3
"""Number of kinds of amounts: endowment, usage, want."""

AMOUNTS = FIRST_COLUMN + KINDS * len(resources.RESOURCES)
"""Number of columns before the grades."""

COLUMNS = AMOUNTS + 2 * report.GRADES

ROW_BYTES = COLUMNS * NUMBER_TYPE.itemsize

SCALES = np.tile(resources.RESOURCES.time_shared, KINDS)
"""Whether an amount grows with the interval, by column after the first."""


def join_columns(table: report.UserTable) -> resources.Vector:
    """Join all columns except the ids to one array, (u, 2 + 3r + 2g).

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
    ).astype(NUMBER_TYPE)


def encode_base64(block: resources.Vector) -> str:
    """Encode a block as text."""
    return base64.b64encode(block.tobytes()).decode('ascii')


class AmountBounds:
    """Upper bounds of the numbers of a node's users.

    Endowments divide the node, so they cannot exceed it. Usage can: a page
    cache and traffic between VMs are faster than disk and network. Wants have
    no bound, because their readers know the nodes' capacities.

    :param what: resources of the sender.
    :param limits: bounds of peers' claims.
    :ivar rates: (3r,) bounds of the sums of amounts as bytes, per second where
        time-shared.
    """

    __slots__ = ('_fixed', '_host', '_limits', '_scaled', 'rates')

    def __init__(
        self, what: node.NodeResources, limits: bounds.Bounds
    ) -> None:
        endless = np.full(len(what.capacity), np.inf)
        rates = np.concatenate((what.capacity, limits.capacity, endless))
        rates *= _ROUNDING
        self.rates = rates.tobytes()
        self._scaled = np.where(SCALES, rates, 0.0)
        self._fixed = np.where(SCALES, 0.0, rates)
        self._host = what.host
        self._limits = limits

    def check(self, block: resources.Vector, interval_s: float) -> None:
        """Check all numbers of a node's users.

        :param block: in our sequence of resources, with at least one row.
        :param interval_s: of the amounts.
        :raises ReportRefused: with the error and the expectation.
        """
        lows, highs = self._limits.column_bounds
        most = self._scaled * interval_s + self._fixed
        # What is no number is neither. All at once: of a table of few users
        # each call of numpy costs more than its work.
        if (
            _is_all_true((block >= lows) & (block <= highs))
            and _is_all_true(
                np.add.reduce(block, axis=0)[FIRST_COLUMN:AMOUNTS] <= most
            )
            and _is_whole(block[:, 1])
        ):
            return
        self._raise_error(block, most.tolist())

    def _raise_error(self, block: resources.Vector, most: list[float]) -> None:
        """Raise the error of a block that is out of bounds."""
        lows: list[float] = np.minimum.reduce(block, axis=0).tolist()
        highs: list[float] = np.maximum.reduce(block, axis=0).tolist()
        _check_finite(lows, highs)
        _check_heaviness(self._host, max(highs[0], -lows[0]), self._limits)
        _check_instances(block[:, 1], lows[1], highs[1])
        sums: list[float] = np.add.reduce(block, axis=0).tolist()[
            FIRST_COLUMN:AMOUNTS
        ]
        width = len(resources.RESOURCES)
        for name, part in (
            ('endowment', slice(None, width)),
            ('usage', slice(width, 2 * width)),
            ('wanted', slice(2 * width, None)),
        ):
            if min(lows[FIRST_COLUMN:AMOUNTS][part]) < 0:
                raise exception.ReportRefused(
                    'bounds', f'{self._host}: {name} must not be negative'
                )
            _check_sums(self._host, name, sums[part], most[part])
        _check_grades(self._host, min(lows[AMOUNTS:]), max(highs[AMOUNTS:]))


def parse_table(
    written: object,
    ids: tuple[str, ...],
    order: list[int],
    most: AmountBounds,
    interval_s: float,
) -> report.UserTable:
    """Parse and validate the table of a node's users.

    :param written: the received block.
    :param ids: of the users.
    :param order: position of each of our resources in the sender's sequence.
    :param most: upper bounds of the numbers.
    :param interval_s: of the amounts.
    :raises ReportRefused: with the error and the expectation.
    """
    block = _parse_block(written, len(ids), COLUMNS, 'table')
    # Where the orders agree, as they do almost always, nothing is moved.
    if order != OUR_POSITIONS:
        moved = [
            FIRST_COLUMN + kind * len(order) + place
            for kind in range(KINDS)
            for place in order
        ]
        grades = range(AMOUNTS, COLUMNS)
        block = block[:, [*range(FIRST_COLUMN), *moved, *grades]]
    if ids:
        most.check(block, interval_s)
    return table_of_block(ids, block)


def with_exempt(
    table: report.UserTable, written: object, host: str
) -> report.UserTable:
    """Add the grades of VMs that are not steered.

    :param written: (u, 2g) as received.
    :raises ReportRefused: with the error and the expectation.
    """
    left = _parse_block(written, len(table), 2 * report.GRADES, 'exempt')
    most = table.grades
    if most is None or not _is_all_true(
        (left >= 0) & (left <= most * _ROUNDING)
    ):
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


def table_of_block(
    ids: tuple[str, ...], block: resources.Vector
) -> report.UserTable:
    """Create a table of validated numbers in our sequence."""
    used, wanted = (
        FIRST_COLUMN + kind * len(OUR_POSITIONS) for kind in (1, 2)
    )
    return report.UserTable(
        ids,
        block[:, 0],
        block[:, FIRST_COLUMN:used],
        block[:, used:wanted],
        block[:, 1].astype(np.int64),
        block[:, wanted:AMOUNTS],
        block[:, AMOUNTS:],
    )


def _is_whole(numbers: resources.Vector) -> bool:
    return _is_all_true(numbers.astype(np.int64) == numbers)


def _is_all_true(flags: npt.NDArray[np.bool_]) -> bool:
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


def _parse_block(
    written: object, rows: int, columns: int, name: str
) -> resources.Vector:
    size = rows * columns * NUMBER_TYPE.itemsize
    octets = (
        written
        if type(written) is bytes
        else _decode_base64(written, size, name)
    )
    if len(octets) != size:
        raise exception.ReportRefused(
            'malformed',
            f'the report: {name} holds {len(octets)} bytes; expected {size} '
            f'for {wording.counted(rows, "user")}',
        )
    block = np.frombuffer(octets, NUMBER_TYPE).reshape(rows, columns)
    return block.astype(np.float64, copy=False)


def _decode_base64(written: object, size: int, name: str) -> bytes:
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


_MAX_ROWS = 50_000
"""Largest number of user rows that are checked at a time; about 6 MB."""


class UnparsedTable(NamedTuple):
    """The numbers of one node's users that are not parsed yet.

    :ivar octets: a block with at least one row, in our sequence of resources.
    :ivar ids: of the users, one per row.
    :ivar most: upper bounds of the numbers.
    :ivar interval_s: of the amounts.
    """

    octets: bytes
    ids: tuple[str, ...]
    most: AmountBounds
    interval_s: float


def parse_tables(
    all_of: Sequence[UnparsedTable], limits: bounds.Bounds
) -> Iterator[report.UserTable | exception.ReportRefused]:
    """Parse the tables of some nodes, and validate them together.

    For a table of few users each numpy call costs more than its work, so the
    tables are stacked. Only after an error each is validated alone, to find
    the faulty one.

    :param limits: bounds of peers' claims.
    :returns: the table of each node, or its error.
    """
    for batch in _split_into_batches(all_of):
        are_good = _are_valid(batch, limits)
        for each in batch:
            yield (
                _parse_valid_table(each)
                if are_good
                else _parse_or_refuse(each)
            )


def _split_into_batches(
    all_of: Sequence[UnparsedTable],
) -> Iterator[list[UnparsedTable]]:
    batch: list[UnparsedTable] = []
    rows = 0
    for each in all_of:
        if batch and rows + len(each.ids) > _MAX_ROWS:
            yield batch
            batch, rows = [], 0
        batch.append(each)
        rows += len(each.ids)
    if batch:
        yield batch


def _are_valid(batch: list[UnparsedTable], limits: bounds.Bounds) -> bool:
    block = np.frombuffer(
        b''.join([each.octets for each in batch]), NUMBER_TYPE
    ).reshape(-1, COLUMNS)
    lows, highs = limits.column_bounds
    # What is no number is neither, and comes out of both.
    if not (
        (np.minimum.reduce(block) >= lows).all()
        and (np.maximum.reduce(block) <= highs).all()
    ):
        return False
    counted = block[:, 1]
    if not (counted.astype(np.int64) == counted).all():
        return False
    rows = [len(each.ids) for each in batch]
    starts = list(itertools.accumulate(rows[:-1], initial=0))
    sums = np.add.reduceat(block, starts)[:, FIRST_COLUMN:AMOUNTS]
    return bool((sums <= _upper_bounds(batch)).all())


def _upper_bounds(batch: list[UnparsedTable]) -> resources.Vector:
    """Return the upper bounds of the sums of each node's amounts, (n, 3r)."""
    rates = np.frombuffer(b''.join([each.most.rates for each in batch]))
    intervals = np.array([[each.interval_s] for each in batch])
    scales = np.where(SCALES, intervals, 1.0)
    return scales * rates.reshape(scales.shape)


def _parse_valid_table(each: UnparsedTable) -> report.UserTable:
    # Of its own memory: kept, a part of the common block would keep it all.
    block = np.frombuffer(each.octets, NUMBER_TYPE).reshape(-1, COLUMNS)
    return table_of_block(each.ids, block.astype(np.float64, copy=False))


def _parse_or_refuse(
    each: UnparsedTable,
) -> report.UserTable | exception.ReportRefused:
    try:
        return parse_table(
            each.octets, each.ids, OUR_POSITIONS, each.most, each.interval_s
        )
    except exception.ReportRefused as refused:
        return refused
