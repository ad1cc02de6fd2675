# SPDX-License-Identifier: Apache-2.0

"""Choosing the servers that leave: the contract of the plugins."""

import abc
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nova_fairness import exception
from nova_fairness.model import wording
from nova_fairness.planners.preemption import candidates

Found = tuple[int, Sequence[int]]
"""Row of a host, and the parties that leave so that there is room on it."""


class Victims(abc.ABC):
    """Chooses who leaves; subclasses are loaded by stevedore.

    Arguments of the constructor are numbers that operators may set, each with
    a default; it raises ``ValueError`` for one that is out of its range.
    """

    description: ClassVar[str]
    """One sentence for operators."""

    @abc.abstractmethod
    def choose(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose hosts and victims for needs, the next one first.

        The victims of a need have left, and the need has room, before the next
        one. The result depends on the arguments only.

        :returns: one per need; ``None`` where there can be no room.
        """


class OneByOne(Victims):
    """Chooses for one server after the other."""

    def choose(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose for each server; see :meth:`Victims.choose`."""
        pool = candidates.FreeCapacity(field)
        found: list[candidates.VictimChoice | None] = []
        for need in needs:
            tried = pool.copy()
            choice = self._of_need(need, tried)
            found.append(choice)
            if choice is not None:
                pool = tried
        return found

    @abc.abstractmethod
    def one(
        self,
        piece: candidates.Piece,
        rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> Found | None:
        """Choose for one server for which no host has room.

        :param piece: that it is of.
        :param rows: (p,) hosts on which it may lie.
        :param may: (v,) parties that may leave, and are still there.
        :param pool: what is left; it is not changed.
        """

    def _of_need(
        self, need: candidates.Need, pool: candidates.FreeCapacity
    ) -> candidates.VictimChoice | None:
        limit = need.limit.copy()
        rows: list[tuple[int, ...]] = []
        parties: list[int] = []
        for piece in need.pieces:
            chosen: list[int] = []
            for _ in range(piece.count):
                found = self._of_server(piece, limit > 0, need.may, pool)
                if found is None:
                    return None
                row, leaving = found
                for party in leaving:
                    pool.leave(party)
                pool.place(piece, row)
                limit[row] -= 1
                chosen.append(row)
                parties += leaving
            rows.append(tuple(chosen))
        return candidates.VictimChoice(tuple(rows), tuple(parties))

    def _of_server(
        self,
        piece: candidates.Piece,
        open_rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> Found | None:
        rows = piece.rows & open_rows
        free = pool.fits(piece, rows)
        if len(free):
            left = pool.free[:, free] - piece.amounts[:, np.newaxis]
            return int(free[np.lexsort(left)[0]]), ()
        return self.one(piece, rows, may & pool.here, pool)


def chosen(
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
    victims: Victims,
) -> Sequence[candidates.VictimChoice | None]:
    """Choices of a plugin, checked: :meth:`Victims.choose`.

    :raises PluginMisbehaved: if it failed, or chose what makes no room.
    """
    name = type(victims).__name__
    try:
        found = victims.choose(needs, field)
        fault = wrong(needs, field, found)
    except exception.PluginMisbehaved:
        raise
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'the victims {name} failed: {type(error).__name__}: {error}'
        ) from error
    if fault:
        raise exception.PluginMisbehaved(f'the victims {name} {fault}')
    return found


def wrong(
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
    found: Sequence[candidates.VictimChoice | None],
) -> str:
    """Say what is wrong with choices that were made; '' if nothing is."""
    if len(found) != len(needs):
        wanted = wording.counted(len(needs), 'need')
        return f'must choose for {wanted}, and did for {len(found)}'
    pool = candidates.FreeCapacity(field)
    for need, choice in zip(needs, found, strict=True):
        fault = '' if choice is None else _wrong_one(need, choice, pool)
        if fault:
            return fault
    return ''


def _wrong_one(
    need: candidates.Need,
    choice: candidates.VictimChoice,
    pool: candidates.FreeCapacity,
) -> str:
    for v in choice.parties:
        if not (need.may[v] and pool.here[v]):
            return 'chose a server that may not leave, or one twice'
        pool.leave(v)
    used = np.zeros_like(need.limit)
    for piece, rows in zip(need.pieces, choice.rows, strict=True):
        if len(rows) != piece.count:
            return 'chose hosts for more or fewer servers than there are'
        for row in rows:
            only = piece.rows & (np.arange(len(piece.rows)) == row)
            if not len(pool.fits(piece, only)):
                return 'chose a host without room'
            pool.place(piece, row)
            used[row] += 1
    if (used > need.limit).any():
        return 'chose a host for more servers of a group than it takes'
    return ''
