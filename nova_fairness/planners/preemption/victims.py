# SPDX-License-Identifier: Apache-2.0

"""Contract of the plugins that choose victims."""

import abc
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nova_fairness import exception
from nova_fairness.model import wording
from nova_fairness.planners.preemption import candidates

Found = tuple[int, Sequence[int]]
"""Row of a host, and the candidates that are evicted to make room on it."""


class Victims(abc.ABC):
    """Chooses victims; stevedore loads subclasses.

    Arguments of the constructor are numbers that operators may set, each with
    a default. The constructor raises ``ValueError`` for a number that is out
    of its range.
    """

    description: ClassVar[str]
    """Sentence for operators."""

    @abc.abstractmethod
    def choose(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose hosts and victims for needs, in their order.

        Each choice assumes that the victims of earlier needs have left, and
        that earlier needs have taken their room. The result depends on the
        arguments only.

        :returns: one choice for each need; ``None`` if no victims make room
            for it.
        """


class OneByOne(Victims):
    """Chooses victims for one server after another."""

    def choose(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose victims for each server; see :meth:`Victims.choose`."""
        pool = candidates.FreeCapacity(field)
        found: list[candidates.VictimChoice | None] = []
        for need in needs:
            tried = pool.copy()
            choice = self._choose_for_need(need, tried)
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
        """Choose a host and victims for one server for which no host has room.

        :param piece: the piece of the server.
        :param rows: (p,) hosts on which the server may be.
        :param may: (v,) remaining parties that may leave.
        :param pool: free room and remaining parties; it is not changed.
        """

    def _choose_for_need(
        self, need: candidates.Need, pool: candidates.FreeCapacity
    ) -> candidates.VictimChoice | None:
        limit = need.limit.copy()
        rows: list[tuple[int, ...]] = []
        parties: list[int] = []
        for piece in need.pieces:
            chosen: list[int] = []
            for _ in range(piece.count):
                found = self._choose_for_server(
                    piece, limit > 0, need.may, pool
                )
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

    def _choose_for_server(
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
    """Call :meth:`Victims.choose` of a plugin, and check the choices.

    :raises PluginMisbehaved: if the plugin failed, or its choices make no
        room.
    """
    name = type(victims).__name__
    try:
        found = victims.choose(needs, field)
        fault = choices_fault(needs, field, found)
    except exception.PluginMisbehaved:
        raise
    except Exception as error:
        raise exception.PluginMisbehaved(
            f'the victims {name} failed: {type(error).__name__}: {error}'
        ) from error
    if fault:
        raise exception.PluginMisbehaved(f'the victims {name} {fault}')
    return found


def choices_fault(
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
    found: Sequence[candidates.VictimChoice | None],
) -> str:
    """Return the fault of choices, as a part of a sentence; '' if there is
    none.
    """
    if len(found) != len(needs):
        wanted = wording.counted(len(needs), 'need')
        return f'must choose for {wanted}, and did for {len(found)}'
    pool = candidates.FreeCapacity(field)
    for need, choice in zip(needs, found, strict=True):
        fault = '' if choice is None else _choice_fault(need, choice, pool)
        if fault:
            return fault
    return ''


def _choice_fault(
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
