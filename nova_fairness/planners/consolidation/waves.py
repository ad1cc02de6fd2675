# SPDX-License-Identifier: Apache-2.0

"""Order of moves in which each move has room.

While a server moves, it takes room on both hosts. Moves that run at the same
time are a *wave*; the room that they leave on a host is free for moves of the
next wave. Where moves wait for each other, for example if two servers exchange
their hosts, one server can make a detour: it waits on a third host.
"""

import collections
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.model import plans
from nova_fairness.planners import free_amounts
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.consolidation import layout as layout_module

Rows = layout_module.Rows
Marks = layout_module.Marks

_DETOURS, _IN_ALL = 2, 2000
"""Largest number of detours of a server, and of a plan."""


@dataclasses.dataclass(frozen=True, slots=True)
class MoveConcurrency:
    """Largest number of simultaneous moves.

    :ivar cloud: largest number of moves in the whole cloud, >= 1.
    :ivar host: largest number of moves to or from one host, >= 1.
    """

    cloud: int = 10
    host: int = 1


Step = tuple[int, int]
"""An item, and the row of its new host."""


def steps_between(before: Rows, after: Rows) -> list[Step]:
    """Return the items that have another host afterwards; new items are left
    out.

    :param before: (n,) rows of the hosts of items before.
    :param after: (n,) rows of the hosts of items afterwards.
    """
    moved = (after != before) & (before != layout_module.NOWHERE)
    return [(int(n), int(after[n])) for n in np.flatnonzero(moved)]


def plan_waves(
    layout: layout_module.HostLayout,
    steps: Sequence[Step],
    concurrency: MoveConcurrency,
    detours: bool = False,
) -> list[list[Step]] | None:
    """Put moves into waves, so that each move has room.

    :param layout: the layout before the moves; it is not changed.
    :param detours: whether servers may wait on a third host.
    :returns: waves; ``None`` if no such order is found.
    """
    mark = layout.mark()
    found: list[list[Step]] = []
    pending = np.array(steps, dtype=np.intp).reshape(len(steps), 2)
    may = layout.may_move & (layout.at != layout_module.NOWHERE) & detours
    left, count = np.where(may, _DETOURS, 0), _IN_ALL
    while len(pending):
        chosen = _next_wave(layout, pending, concurrency)
        wave = [(int(n), int(row)) for n, row in pending[chosen]]
        pending = np.delete(pending, chosen, axis=0)
        if (
            not wave
            and count
            and (step := _cheapest_detour(layout, pending, left))
        ):
            count -= 1
            wave, left[step[0]] = [step], left[step[0]] - 1
            if step[0] not in pending[:, 0]:
                back = step[0], int(layout.at[step[0]])
                pending = np.vstack([pending, back])
        if not wave:
            layout.back(mark)
            return None
        found.append(wave)
        for n, row in wave:
            layout.put(n, row)
    layout.back(mark)
    return without_detours(layout, found, concurrency)


def without_detours(
    layout: layout_module.HostLayout,
    found: list[list[Step]],
    concurrency: MoveConcurrency,
) -> list[list[Step]]:
    """Remove detours and double moves that no other move needs.

    A detour is not needed if the server for which it made room has found room
    elsewhere since.
    """
    legs: dict[int, list[int]] = {}
    for number, wave in enumerate(found):
        for n, _ in wave:
            legs.setdefault(n, []).append(number)
    for n in (n for n, own in legs.items() if len(own) > 1):
        row = next(r for m, r in found[legs[n][-1]] if m == n)
        stays = row == layout.at[n]
        for number in [-1] if stays else reversed(legs[n]):
            direct = [
                [(m, r) for m, r in wave if m != n]
                + ([(n, row)] if at == number else [])
                for at, wave in enumerate(found)
            ]
            if _can_be_made(layout, direct, concurrency):
                found = direct
                break
    return [wave for wave in found if wave]


def _can_be_made(
    layout: layout_module.HostLayout,
    found: Sequence[Sequence[Step]],
    concurrency: MoveConcurrency,
) -> bool:
    """Whether all moves of each wave can run at the same time."""
    mark, can = layout.mark(), True
    for wave in found:
        pending = np.array(wave, dtype=np.intp).reshape(len(wave), 2)
        can = len(_next_wave(layout, pending, concurrency)) == len(wave)
        if not can:
            break
        for n, row in wave:
            layout.put(n, row)
    layout.back(mark)
    return can


def _cheapest_detour(
    layout: layout_module.HostLayout, pending: Rows, left: Rows
) -> Step | None:
    """Return the cheapest move that frees enough room on a host for another
    pending move.

    Servers whose room is enough for another move are preferred, then servers
    that are to move anyway.

    :param left: (n,) detours that each item may still make.
    """
    moves = np.isin(np.arange(len(left)), pending[:, 0])
    frees = _frees_enough(layout, pending)
    order = np.lexsort((layout.cost, ~moves, ~frees))
    for n in map(int, order[(left > 0)[order] & (frees | moves)[order]]):
        others = layout.hosts.takes.copy()
        others[layout.at[n]] = False
        row = layout.find(n, others)
        if row != layout_module.NOWHERE:
            return n, row
    return None


def _frees_enough(layout: layout_module.HostLayout, pending: Rows) -> Marks:
    """Return whether each item frees enough room for a pending move, (n,).

    The pending move is that of the smallest item bound for the same host.
    """
    lacks = np.full_like(layout.free, hosts_module.MOST)
    smallest_last = np.argsort(-layout.size[pending[:, 0]], kind='stable')
    items, rows = pending[smallest_last].T
    amounts = layout.amounts[items].T
    # A lack of a class does not matter if the item does not need the class.
    lacks[:, rows] = np.where(amounts > 0, amounts - layout.free[:, rows], 0)
    frees = (layout.amounts >= lacks[:, layout.at].T).all(axis=1)
    return np.asarray(frees & (layout.at != layout_module.NOWHERE))


def _next_wave(
    layout: layout_module.HostLayout,
    pending: Rows,
    concurrency: MoveConcurrency,
) -> list[int]:
    """Return the indices of the pending moves that can run now."""
    items, rows = pending.T
    at = layout.at[items]
    left = free_amounts.FreeAmounts(layout.free)
    may = left.having(rows, layout.amounts[items].T)
    count = np.zeros(layout.free.shape[1], dtype=np.int64)
    arriving: collections.Counter[tuple[str, int]] = collections.Counter()
    wave: list[int] = []
    while len(wave) < concurrency.cloud and may.any():
        place = int(may.argmax())
        may[place] = False
        n, row = int(items[place]), int(rows[place])
        group = layout.items[n].apart
        key = (group.uuid if group else '', row)
        if not left.has(row, layout.amounts[n]) or not (
            layout.keeps_apart(n, row, arriving[key])
        ):
            continue
        left.take(row, layout.amounts[n])
        arriving[key] += 1
        wave.append(place)
        for host in (int(layout.at[n]), row):
            count[host] += 1
            if count[host] >= concurrency.host:
                may &= (at != host) & (rows != host)
    return wave


def moves_of_waves(
    layout: layout_module.HostLayout, found: Sequence[Sequence[Step]]
) -> tuple[plans.Move, ...]:
    """Return the moves of servers, wave by wave."""
    at = layout.at.copy()
    moves = []
    for number, wave in enumerate(found, 1):
        for n, row in wave:
            names = layout.hosts.names
            uuid, cost = layout.items[n].uuid, int(layout.cost[n])
            moves.append(
                plans.Move(uuid, names[at[n]], names[row], number, cost)
            )
            at[n] = row
    return tuple(moves)
