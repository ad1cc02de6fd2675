# SPDX-License-Identifier: Apache-2.0

"""Published rules that choose victims, as plugins for comparisons.

Each rule follows the description of its authors, for a cloud of hosts. One
fault of the originals is left out: no rule here evicts a server before it is
known that the request then fits. A *party* is a candidate: a server that may
be evicted, or several that leave together.
"""

import abc
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import hashlib
import math

import numpy as np

from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import victims
from nova_fairness.planners.preemption import youngest

_MOST_SUMS = 20_000
"""Largest number of different sums of amounts that are kept for one host.
Servers of few sizes have few sums, however many servers a host has."""

_HOUR_S = 3600.0


class _HostByHost(victims.OneByOne):
    """Chooses a host, and then candidates on this host."""

    def one(
        self,
        piece: candidates.Piece,
        rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """List the hosts that could have room, and let the rule choose."""
        able = _victims_by_host(piece, rows, may, pool)
        return self.among(piece, able, pool) if able else None

    @abc.abstractmethod
    def among(
        self,
        piece: candidates.Piece,
        able: dict[int, list[int]],
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Choose a host, and candidates on it.

        :param able: candidates by host. Each host would have room without its
            candidates.
        """


@dataclasses.dataclass(frozen=True)
class Chance(_HostByHost):
    """Aardvark's default: a random host, and random candidates on it.

    :ivar seed: seed of the random choices, >= 0.
    """

    description = 'Any host, and any servers on it until there is room.'

    seed: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise ValueError(f'seed must be from 0 to 2^31, got {self.seed!r}')

    def among(
        self,
        piece: candidates.Piece,
        able: dict[int, list[int]],
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Draw a host, then candidates until there is room."""
        # What is left of the cloud makes the draws differ, and repeatable.
        key = f'{self.seed:.0f}/{pool.here.sum()}/{pool.field.now:.0f}'
        row = min(able, key=lambda each: _random_stream(key, 'host', each))
        order = sorted(
            able[row], key=lambda each: _random_stream(key, 'party', each)
        )
        return row, _until_fits(piece, row, order, pool)


def _random_stream(*words: object) -> bytes:
    """Return random bytes; equal words give equal bytes."""
    return hashlib.sha256('/'.join(map(str, words)).encode()).digest()


class Strict(_HostByHost):
    """Aardvark's strict: the combination that leaves the least room unused.

    Memory first, then CPUs, then disk. All servers of a host are combined, as
    long as they have at most :data:`_MOST_SUMS` different sums.
    """

    description = 'The servers that leave the least room over.'

    def among(
        self,
        piece: candidates.Piece,
        able: dict[int, list[int]],
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Try all combinations on every host."""
        found = [
            (self.rank(piece, row, parties, pool), row, parties)
            for row in sorted(able)
            for parties in _combinations(
                piece, row, self.listed(piece, able[row], pool), pool
            )
        ]
        if not found:
            row = min(able)
            return row, _until_fits(piece, row, sorted(able[row]), pool)
        _, best, chosen = min(found)
        return best, chosen

    def listed(
        self,
        piece: candidates.Piece,
        parties: Sequence[int],
        pool: candidates.FreeCapacity,
    ) -> list[int]:
        """Return the candidates in the order in which they are combined."""
        return sorted(parties)

    def rank(
        self,
        piece: candidates.Piece,
        row: int,
        parties: Sequence[int],
        pool: candidates.FreeCapacity,
    ) -> tuple[float, ...]:
        """Return the unused room, class by class; the least is best."""
        field = pool.field
        entries = np.isin(field.party, parties) & (field.row == row)
        left = pool.free[:, row] + field.amounts[entries].sum(axis=0)
        return tuple((left - piece.amounts).tolist())


class StrictTime(Strict):
    """Aardvark's strict_time: as strict, the oldest of every size first."""

    description = 'The oldest servers that leave the least room over.'

    def listed(
        self,
        piece: candidates.Piece,
        parties: Sequence[int],
        pool: candidates.FreeCapacity,
    ) -> list[int]:
        """Return the oldest candidates of each size, as many as are enough
        alone.
        """
        field = pool.field
        kept: list[int] = []
        sizes: dict[tuple[int, ...], int] = {}
        for v in sorted(parties, key=lambda v: (field.since[v], v)):
            amounts = field.amounts[field.party == v].sum(axis=0)
            helps = (amounts > 0) & (piece.amounts > 0)
            enough = math.ceil(
                (piece.amounts[helps] / amounts[helps]).max(initial=1.0)
            )
            size = tuple(amounts.tolist())
            sizes[size] = sizes.get(size, 0) + 1
            if sizes[size] <= enough:
                kept.append(v)
        return kept


class Opie(_HostByHost):
    """OPIE's ranks: hosts with few preemptible servers whose hours are new.

    Both weighers count alike, each from 0 to 1, as in Nova. OPIE then ends one
    server of the host; here servers of the host are evicted until there is
    room.
    """

    description = (
        'Hosts with few preemptible servers whose hours have just begun.'
    )

    def among(
        self,
        piece: candidates.Piece,
        able: dict[int, list[int]],
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Choose the host with the largest weight."""
        field, hosts = pool.field, sorted(able)
        count = np.array([float(len(able[row])) for row in hosts])
        begun_s = np.array(
            [
                sum((field.now - field.since[v]) % _HOUR_S for v in able[row])
                for row in hosts
            ]
        )
        weight = _normalised(-count) + _normalised(-begun_s)
        row = hosts[int(weight.argmax())]
        return row, _until_fits(piece, row, sorted(able[row]), pool)


class Kueue(victims.OneByOne):
    """Kueue's fair sharing: the owner with the highest share loses first.

    Its newest server is the next victim. At the end the victims that are not
    needed are put back, the last one first (KEP-1714).
    """

    description = (
        'The newest servers of the account that has most of its share, one '
        'by one.'
    )

    def one(
        self,
        piece: candidates.Piece,
        rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Choose victims one by one until the request fits."""
        return youngest.first_fit(
            piece, rows, self._order(may, pool.field), pool
        )

    @staticmethod
    def _order(
        may: candidates.Marks, field: candidates.VictimCandidates
    ) -> Iterator[int]:
        """Yield candidates in the order in which they become victims."""
        queues: dict[int, list[int]] = {}
        order = sorted(
            np.flatnonzero(may).tolist(), key=lambda v: (field.since[v], v)
        )
        for v in order:
            queues.setdefault(int(field.owner[v]), []).append(v)
        level = field.level.copy()
        while queues:
            owner = max(queues, key=lambda o: (level[o], -o))
            v = queues[owner].pop()
            level[owner] -= field.step[v]
            if not queues[owner]:
                del queues[owner]
            yield v


def _victims_by_host(
    piece: candidates.Piece,
    rows: candidates.Marks,
    may: candidates.Marks,
    pool: candidates.FreeCapacity,
) -> dict[int, list[int]]:
    """Return the candidates of each host that would have room without
    them.
    """
    field, entries = pool.field, pool.entries(piece, rows, may)
    row = field.row[entries]
    return {
        at: np.unique(field.party[entries[row == at]]).tolist()
        for at in np.unique(row).tolist()
    }


def _until_fits(
    piece: candidates.Piece,
    row: int,
    order: Sequence[int],
    pool: candidates.FreeCapacity,
) -> list[int]:
    """Return the first candidates without which one server fits."""
    tried, left = pool.copy(), []
    only = np.arange(tried.free.shape[1]) == row
    for v in order:
        if len(tried.fits(piece, only)):
            break
        tried.leave(v)
        left.append(v)
    return left


def _combinations(
    piece: candidates.Piece,
    row: int,
    parties: Sequence[int],
    pool: candidates.FreeCapacity,
) -> Iterator[list[int]]:
    """Yield combinations of candidates without which one server fits.

    Of combinations with the same amounts only one is yielded. No candidate is
    added to a combination that is large enough.
    """
    field, asked = pool.field, piece.amounts > 0
    free = pool.free[:, row]
    if (free[asked] >= piece.amounts[asked]).all():
        yield []
        return
    lacking = {tuple(free.tolist()): list[int]()}
    enough: dict[tuple[int, ...], list[int]] = {}
    for v in parties:
        at = (field.party == v) & (field.row == row)
        amounts = field.amounts[at].sum(axis=0)
        for had, chosen in list(lacking.items()):
            found = np.array(had) + amounts
            fits = (found[asked] >= piece.amounts[asked]).all()
            sums = enough if fits else lacking
            if fits or len(lacking) < _MOST_SUMS:
                sums.setdefault(tuple(found.tolist()), [*chosen, v])
    yield from enough.values()


def _normalised(weights: candidates.Floats) -> candidates.Floats:
    """Scale weights to 0..1, as Nova's weighers do."""
    low, high = weights.min(), weights.max()
    if high == low:
        return np.zeros(len(weights))
    scaled: candidates.Floats = (weights - low) / (high - low)
    return scaled
