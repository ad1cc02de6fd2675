# SPDX-License-Identifier: Apache-2.0

"""Order of the moves of a market plan, in which each move has room.

While a server moves, it takes room on both hosts. Moves that have room at the
same time are a wave. If all remaining moves wait for each other, one server
goes to a third host first; a server whose move makes room for another one is
preferred. If no order leads to the wanted hosts, moves end where the mean
level is lowest.
"""

from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from nova_fairness.model import plans
from nova_fairness.planners import free_amounts
from nova_fairness.planners.market import arrays

Rows = arrays.Rows
_Step = tuple[int, int]
"""A server, and the row of its new host."""

Wave = list[_Step]
"""Moves that have room at the same time."""

_SAME = 1e-9
"""Largest relative difference of levels by rounding."""


def order_moves(field: arrays.MarketArrays, after: Rows) -> list[Wave]:
    """Put moves into an order in which each has room.

    :param after: (n,) rows of the wanted hosts of servers.
    :returns: waves that lead to these hosts; if some moves find no room, waves
        that lead to other hosts.
    """
    waves = _waves(field, after)
    if not (hosts_after_waves(field, waves) == after).all():
        waves = _without_useless_detours(
            field, _best_prefix(field, waves), after
        )
    return without_double_moves(field, waves)


def _waves(field: arrays.MarketArrays, after: Rows) -> list[Wave]:
    """Return waves that lead to the wanted hosts, as far as moves have
    room.
    """
    at = field.at.copy()
    free = free_amounts.FreeAmounts(field.hosts.free)
    pending = [
        (int(n), int(after[n])) for n in np.flatnonzero(after != field.at)
    ]
    waves: list[Wave] = []
    detoured: set[int] = set()
    while pending:
        wave, pending = _next_wave(field, free, pending)
        if not wave:
            aside = _best_detour(field, at, free, pending, detoured)
            if aside is None:
                break
            detoured.add(aside[0])
            wave = [aside]
        _apply_wave(field, at, free, wave)
        waves.append(wave)
    return waves


def _apply_wave(
    field: arrays.MarketArrays,
    at: Rows,
    free: free_amounts.FreeAmounts,
    wave: Iterable[_Step],
) -> None:
    """Apply the moves of a wave to the free amounts."""
    for n, row in wave:
        free.give_back(at[n], field.amounts[n])
        free.take(row, field.amounts[n])
        at[n] = row


def hosts_after_waves(
    field: arrays.MarketArrays, waves: Iterable[Wave]
) -> Rows:
    """Return the row of the host of each server after the waves, (n,)."""
    at = field.at.copy()
    for wave in waves:
        for n, row in wave:
            at[n] = row
    return at


def _best_prefix(field: arrays.MarketArrays, waves: list[Wave]) -> list[Wave]:
    """Return the first waves, up to the wave after which the mean level is
    lowest.
    """
    at, least, count = field.at.copy(), field.mean_level(field.at), 0
    for number, wave in enumerate(waves, 1):
        for n, row in wave:
            at[n] = row
        level = field.mean_level(at)
        # Sums in another order differ in their last digits.
        if level < least * (1 - _SAME):
            least, count = level, number
    return waves[:count]


def _without_useless_detours(
    field: arrays.MarketArrays, waves: list[Wave], after: Rows
) -> list[Wave]:
    """Remove the detours (moves via another host) that do not lower the mean
    level, and return the other waves.
    """
    stranded = np.flatnonzero(
        (hosts_after_waves(field, waves) != after) & (after != field.at)
    )
    moved = {n for wave in waves for n, _ in wave}
    for n in map(int, stranded):
        if n not in moved:
            continue
        fewer = _without_server(waves, n)
        now = field.mean_level(hosts_after_waves(field, waves))
        then = field.mean_level(hosts_after_waves(field, fewer))
        if then <= now * (1 + _SAME) and _has_room(field, fewer):
            waves = fewer
    return waves


def without_double_moves(
    field: arrays.MarketArrays, waves: list[Wave]
) -> list[Wave]:
    """Return waves in which a server moves twice only if other moves need
    that.
    """
    legs: dict[int, list[int]] = {}
    for number, wave in enumerate(waves):
        for n, _ in wave:
            legs.setdefault(n, []).append(number)
    for n in (n for n, own in legs.items() if len(own) > 1):
        row = next(r for m, r in waves[legs[n][-1]] if m == n)
        if row == field.at[n]:
            legs[n].append(-1)
        for number in reversed(legs[n]):
            direct = [
                [(m, r) for m, r in wave if m != n]
                + ([(n, row)] if at == number else [])
                for at, wave in enumerate(waves)
            ]
            if _has_room(field, direct):
                waves = direct
                break
            if number < 0:
                break
    return [wave for wave in waves if wave]


def _without_server(waves: Iterable[Wave], n: int) -> list[Wave]:
    left = [[step for step in wave if step[0] != n] for wave in waves]
    return [wave for wave in left if wave]


def _has_room(field: arrays.MarketArrays, waves: Iterable[Wave]) -> bool:
    """Whether each move of each wave has room."""
    at = field.at.copy()
    free = free_amounts.FreeAmounts(field.hosts.free)
    for wave in waves:
        fits, later = _next_wave(field, free, wave)
        if later:
            return False
        _apply_wave(field, at, free, fits)
    return True


def _next_wave(
    field: arrays.MarketArrays,
    free: free_amounts.FreeAmounts,
    pending: Sequence[_Step],
) -> tuple[Wave, Wave]:
    """Return the moves that have room now, and the other moves."""
    left = free_amounts.FreeAmounts(free.free)
    wave, later = [], []
    for n, row in pending:
        if left.has(row, field.amounts[n]):
            left.take(row, field.amounts[n])
            wave.append((n, row))
        else:
            later.append((n, row))
    return wave, later


def _best_detour(
    field: arrays.MarketArrays,
    at: Rows,
    free: free_amounts.FreeAmounts,
    pending: Sequence[_Step],
    detoured: set[int],
) -> _Step | None:
    """Return the best waiting server for a detour, and a host with room for
    it.

    A server whose move makes room for another one comes first, then the
    cheapest. It goes to a host for which no move waits, if one has room.
    """
    wanted = {row for _, row in pending}
    waiting = [n for n, _ in pending if n not in detoured]

    def rank(n: int) -> tuple[bool, float, int]:
        return (not _frees_room(field, at, free, pending, n), field.cost[n], n)

    for n in sorted(waiting, key=rank):
        rows = field.types[field.index[n]].shape.rows
        fits = free.having(rows, field.amounts[n][:, np.newaxis])
        # Its own host has room, too, but that is no move.
        found = [int(row) for row in rows[fits] if row != at[n]]
        if found:
            return n, min(found, key=lambda row: (row in wanted, row))
    return None


def _frees_room(
    field: arrays.MarketArrays,
    at: Rows,
    free: free_amounts.FreeAmounts,
    pending: Sequence[_Step],
    n: int,
) -> bool:
    """Whether another move has room after a server has left its host."""
    room = free.free[:, at[n]] + field.amounts[n]
    return any(
        row == at[n]
        and m != n
        and free_amounts.is_enough(room, field.amounts[m])
        for m, row in pending
    )


def moves_of_waves(
    field: arrays.MarketArrays, waves: Sequence[Wave]
) -> tuple[plans.Move, ...]:
    """Return the moves of servers, wave by wave."""
    names, at, moves = field.hosts.names, field.at.copy(), []
    for number, wave in enumerate(waves, 1):
        for n, row in wave:
            moves.append(
                plans.Move(
                    field.running[n].uuid,
                    names[at[n]],
                    names[row],
                    number,
                    round(float(field.cost[n])),
                )
            )
            at[n] = row
    return tuple(moves)
