# SPDX-License-Identifier: Apache-2.0

"""The fewest hosts for servers of few kinds, by what a host can hold.

A *pattern* says how many servers of each kind lie on one host. Patterns that
are worth it are found one after the other (Gilmore and Gomory 1961): the
program without whole numbers gives a bound that is hardly ever missed, and
whole numbers of the patterns found are a packing. Hosts are alike.
"""

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from nova_fairness.shares import programs

Counts = npt.NDArray[np.int64]

_SAME = 1e-7
_MOST = 500
"""Patterns that are looked for at most."""


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """A packing, and what it is worth.

    :ivar bound: fewer hosts are not enough.
    :ivar hosts: (h, k) servers of each kind on each host of the packing.
    """

    bound: int
    hosts: Counts


def packed(
    sizes: Counts, counts: Counts, capacity: Counts, longest_s: float
) -> Packed:
    """Pack servers on as few hosts as can be.

    :param sizes: (k, 2) that a server of each kind needs, not all 0.
    :param counts: (k,) servers of each kind, > 0.
    :param capacity: (2,) of each host, in which each kind fits.
    :param longest_s: for which whole numbers are looked for.
    """
    unit = np.maximum(np.gcd.reduce(sizes, axis=0), 1)
    sizes, capacity = sizes // unit, capacity // unit
    found, bound = _patterns(sizes, counts, capacity)
    least = math.ceil(bound - 1e-6)
    dived = _dived(found, sizes, counts, capacity)
    if len(dived) > least:
        # Its patterns are good ones, if not all of them together.
        every = np.unique(np.concatenate([found, dived]), axis=0)
        whole = _whole(every, counts, longest_s)
        if whole is not None and len(whole) < len(dived):
            dived = whole
    return Packed(least, dived)


def _patterns(
    sizes: Counts, counts: Counts, capacity: Counts
) -> tuple[Counts, float]:
    """Patterns that are worth it, and hosts that are needed at least."""
    kinds = np.flatnonzero(counts)
    found = [_alone(int(k), sizes, counts, capacity) for k in kinds]
    bound = 0.0
    while True:
        cover = programs.cover(np.array(found), counts)
        new = _worth(cover.price, sizes, counts, capacity)
        gain = float(new @ cover.price)
        # Farley's: prices that are cut to what a host is worth.
        bound = max(bound, cover.size / max(gain, 1.0))
        if gain <= 1.0 + _SAME or len(found) >= _MOST:
            return np.array(found), bound
        found.append(new)


def _dived(
    found: Counts, sizes: Counts, counts: Counts, capacity: Counts
) -> Counts:
    """Hosts filled one after the other by what is used most in parts."""
    left, hosts = counts.copy(), []
    while left.any():
        parts = programs.cover(found, left).parts
        best = found[int(parts.argmax())]
        for _ in range(max(int(parts.max() + _SAME), 1)):
            host = np.minimum(best, left)
            hosts.append(host)
            left = left - host
        if left.any():
            found, _ = _patterns(sizes, left, capacity)
    return np.array(hosts)


def _alone(
    kind: int, sizes: Counts, counts: Counts, capacity: Counts
) -> Counts:
    fits = min(
        int(have // size)
        for have, size in zip(capacity, sizes[kind], strict=True)
        if size
    )
    pattern = np.zeros(len(counts), dtype=np.int64)
    pattern[kind] = min(fits, counts[kind])
    return pattern


def _worth(
    price: npt.NDArray[np.float64],
    sizes: Counts,
    counts: Counts,
    capacity: Counts,
) -> Counts:
    """The dearest pattern that a host can hold."""
    first, second = (int(each) + 1 for each in capacity)
    best = np.zeros((first, second))
    taken: list[npt.NDArray[np.int64]] = []
    for k, (a, b) in enumerate(sizes.tolist()):
        number = np.zeros((first, second), dtype=np.int64)
        # What was best without this kind.
        base = best.copy()
        for count in range(1, int(counts[k]) + 1):
            if count * a >= first or count * b >= second:
                break
            part = base[: first - count * a, : second - count * b]
            place = (slice(count * a, None), slice(count * b, None))
            better = part + count * price[k] > best[place] + 1e-12
            best[place] = np.where(
                better, part + count * price[k], best[place]
            )
            number[place] = np.where(better, count, number[place])
        taken.append(number)
    pattern = np.zeros(len(counts), dtype=np.int64)
    at = (first - 1, second - 1)
    for k in reversed(range(len(counts))):
        pattern[k] = taken[k][at]
        at = (
            at[0] - int(pattern[k] * sizes[k, 0]),
            at[1] - int(pattern[k] * sizes[k, 1]),
        )
    return pattern


def _whole(
    patterns: Counts, counts: Counts, longest_s: float
) -> Counts | None:
    row, column = np.nonzero(patterns.T)
    rows = programs.Rows(
        row,
        column,
        patterns.T[row, column].astype(np.float64),
        counts.astype(np.float64),
        np.full(len(counts), np.inf),
    )
    most = np.full(len(patterns), float(counts.sum()))
    found = programs.choose(np.ones(len(patterns)), most, rows, longest_s)
    if found is None:
        return None
    hosts = np.repeat(patterns, found.chosen, axis=0)
    over = hosts.sum(axis=0) - counts
    for each in hosts:
        cut = np.minimum(each, over)
        each -= cut
        over -= cut
    kept: Counts = hosts[hosts.any(axis=1)]
    return kept


def settled(
    packing: Counts, kind: Counts, at: Counts, hosts: int
) -> npt.NDArray[np.intp]:
    """Rows of hosts by which servers come to a packing, with few moves.

    :param packing: (h, k) servers of each kind on each of its hosts.
    :param kind: (n,) of each server.
    :param at: (m,) rows of the hosts of the first of them; the others have
        none yet.
    :param hosts: that there are, >= h.
    :returns: (n,) rows.
    """
    wanted = np.zeros((hosts, packing.shape[1]), dtype=np.int64)
    wanted[: len(packing)] = packing
    there = np.zeros_like(wanted)
    np.add.at(there, (at, kind[: len(at)]), 1)
    kept = np.minimum(wanted[:, np.newaxis], there).sum(axis=2)
    rows = programs.assign(-kept.astype(np.float64))
    left = np.zeros_like(wanted)
    left[rows] = wanted
    found = np.full(len(kind), -1, dtype=np.intp)
    for n, row in enumerate(at.tolist()):
        if left[row, kind[n]]:
            left[row, kind[n]] -= 1
            found[n] = row
    for new in np.flatnonzero(found < 0):
        row = int(left[:, kind[new]].argmax())
        left[row, kind[new]] -= 1
        found[new] = row
    return found
