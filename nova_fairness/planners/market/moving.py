# SPDX-License-Identifier: Apache-2.0

"""Moves in an order in which each finds room.

While a server moves it has room on both hosts. Moves that have room at the
same time are a wave. Where all that are left wait for each other, one of them
goes to a third host first.
"""

from collections.abc import Sequence

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.planners.market import field as field_module

Rows = field_module.Rows
_Step = tuple[int, int]
"""A server and the row of its new host."""


def ordered(
    field: field_module.Field, after: Rows
) -> tuple[tuple[market.Move, ...], Rows]:
    """Put the moves to what is to be in order.

    :param after: (n,) rows of the hosts where servers are to lie.
    :returns: moves, and the rows where they lead; others than ``after`` of
        those that find no room on the way.
    """
    at, free = field.at.copy(), field.hosts.free.copy()
    pending = [
        (int(n), int(after[n])) for n in np.flatnonzero(after != field.at)
    ]
    waves: list[list[_Step]] = []
    sources: list[Rows] = []
    detoured: set[int] = set()
    while pending:
        wave, pending = _wave(field, free, pending)
        if not wave:
            aside = _aside(field, free, pending, detoured)
            if aside is None:
                break
            detoured.add(aside[0])
            wave = [aside]
        sources.append(at.copy())
        for n, row in wave:
            free[:, at[n]] += field.amounts[n]
            free[:, row] -= field.amounts[n]
            at[n] = row
        waves.append(wave)
    return _named(field, waves, sources), at


def _wave(
    field: field_module.Field,
    free: cluster.Amounts,
    pending: Sequence[_Step],
) -> tuple[list[_Step], list[_Step]]:
    """Moves that have room now, and those that do not."""
    left = free.copy()
    wave, later = [], []
    for n, row in pending:
        if (field.amounts[n] <= left[:, row]).all():
            left[:, row] -= field.amounts[n]
            wave.append((n, row))
        else:
            later.append((n, row))
    return wave, later


def _aside(
    field: field_module.Field,
    free: cluster.Amounts,
    pending: Sequence[_Step],
    detoured: set[int],
) -> _Step | None:
    """The cheapest of those that wait, and a host that has room for it."""
    waiting = [n for n, _ in pending if n not in detoured]
    for n in sorted(waiting, key=lambda n: (field.cost[n], n)):
        rows = field.types[field.index[n]].shape.rows
        fits = (free[:, rows] >= field.amounts[n][:, np.newaxis]).all(axis=0)
        if fits.any():
            return n, int(rows[fits.argmax()])
    return None


def _named(
    field: field_module.Field,
    waves: Sequence[Sequence[_Step]],
    sources: Sequence[Rows],
) -> tuple[market.Move, ...]:
    names = field.hosts.names
    return tuple(
        market.Move(
            field.running[n].uuid,
            names[source[n]],
            names[row],
            number,
            float(field.cost[n]),
        )
        for number, (wave, source) in enumerate(
            zip(waves, sources, strict=True), 1
        )
        for n, row in wave
    )
