# SPDX-License-Identifier: Apache-2.0

"""Numbers of many nodes' users that are looked at together.

Of a table of few users each call of numpy costs more than its work. So the
tables of all nodes are put one below the other and checked at once; only if
something is wrong somewhere, each is checked by itself, to name whose it is.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import itertools
from typing import NamedTuple

import numpy as np

from nova_fairness import exception
from nova_fairness.exchange import limits as bounds
from nova_fairness.exchange import tables
from nova_fairness.model import report
from nova_fairness.model import resources

_ROWS = 50_000
"""Of users, that are put together at a time; about 6 MB."""


class Numbers(NamedTuple):
    """Of the users of one node.

    :ivar octets: a block as :mod:`.tables` says, one row at least, in our
        order of resources.
    :ivar ids: of the users, one for each row.
    :ivar most: what the numbers may be.
    :ivar interval_s: of the amounts.
    """

    octets: bytes
    ids: tuple[str, ...]
    most: tables.Most
    interval_s: float


def read(
    all_of: Sequence[Numbers], limits: bounds.Bounds
) -> Iterator[report.UserTable | exception.ReportRefused]:
    """Check the numbers of some nodes, and read them.

    :param limits: what is believed.
    :returns: the table of each, or what is wrong with it.
    """
    for portion in _portions(all_of):
        are_good = _are_good(portion, limits)
        for each in portion:
            yield _made(each) if are_good else _checked(each)


def _portions(all_of: Sequence[Numbers]) -> Iterator[list[Numbers]]:
    portion: list[Numbers] = []
    rows = 0
    for each in all_of:
        if portion and rows + len(each.ids) > _ROWS:
            yield portion
            portion, rows = [], 0
        portion.append(each)
        rows += len(each.ids)
    if portion:
        yield portion


def _are_good(portion: list[Numbers], limits: bounds.Bounds) -> bool:
    block = np.frombuffer(
        b''.join([each.octets for each in portion]), tables.WRITTEN
    ).reshape(-1, tables.COLUMNS)
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
    sums = np.add.reduceat(block, starts)[:, tables.FIRST : tables.AMOUNTS]
    return bool((sums <= _most(portion)).all())


def _most(portion: list[Numbers]) -> resources.Vector:
    """What the amounts of each node may add up to: (n, 3r)."""
    rates = np.frombuffer(b''.join([each.most.rates for each in portion]))
    intervals = np.array([[each.interval_s] for each in portion])
    scales = np.where(tables.SCALES, intervals, 1.0)
    return scales * rates.reshape(scales.shape)


def _made(each: Numbers) -> report.UserTable:
    # Of its own memory: kept, a part of the common block would keep it all.
    block = np.frombuffer(each.octets, tables.WRITTEN).reshape(
        -1, tables.COLUMNS
    )
    return tables.made(each.ids, block.astype(np.float64, copy=False))


def _checked(
    each: Numbers,
) -> report.UserTable | exception.ReportRefused:
    try:
        return tables.read(
            each.octets, each.ids, tables.OURS, each.most, each.interval_s
        )
    except exception.ReportRefused as refused:
        return refused
