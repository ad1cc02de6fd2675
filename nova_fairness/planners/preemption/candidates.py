# SPDX-License-Identifier: Apache-2.0

"""Candidates for eviction, their prices, and the needs that they make room
for.

A *party* leaves together: it is one server, or all servers of a server group.
Rows of hosts are those of :class:`.hosts.Hosts`. The order of all items does
not depend on the order in which they were listed.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.planners import free_amounts
from nova_fairness.planners import hosts as hosts_module

Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
Rows = hosts_module.Rows


@dataclasses.dataclass(frozen=True, eq=False)
class VictimCandidates:
    """Hosts with their free amounts, and the candidates on them.

    A candidate's amounts on one host are an *entry*: (e,).

    :ivar free: (c, p) free amounts of hosts, negative where too much is used.
    :ivar party: (e,) candidate of each entry.
    :ivar row: (e,) row of the host of each entry.
    :ivar amounts: (e, c) amounts that become free on this host when the
        candidate leaves.
    :ivar servers: (v,) UUIDs of the servers of each candidate.
    :ivar owner: (v,) number of the account of each candidate.
    :ivar since: (v,) start of the oldest server of each, seconds of the epoch.
    :ivar price: (v,) cost of the eviction, > 0; prices are added up.
    :ivar level: (o,) use of each owner divided by the owner's share.
    :ivar step: (v,) decrease of its owner's level if the candidate leaves.
    :ivar now: seconds of the epoch.
    """

    free: cluster.Amounts
    party: Rows
    row: Rows
    amounts: cluster.Amounts
    servers: tuple[tuple[str, ...], ...]
    owner: Rows
    since: Floats
    price: Floats
    level: Floats
    step: Floats
    now: float


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """Equal servers, or one item that represents all servers on one host.

    :ivar amounts: (c,) amounts of each server.
    :ivar rows: (p,) whether each host can run such a server when empty.
    :ivar count: number of servers, >= 1.
    """

    amounts: cluster.Amounts
    rows: Marks
    count: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Need:
    """Pieces that start together or not at all.

    :ivar pieces: the pieces, the largest first.
    :ivar limit: (p,) largest number of servers of all pieces on each host.
    :ivar may: (v,) whether each candidate may be evicted for this need.
    """

    pieces: tuple[Piece, ...]
    limit: cluster.Amounts
    may: Marks


@dataclasses.dataclass(frozen=True)
class VictimChoice:
    """Hosts for a need, and the candidates that are evicted for it.

    :ivar rows: rows of hosts, for each piece.
    :ivar parties: numbers of the evicted candidates, each once.
    """

    rows: tuple[tuple[int, ...], ...]
    parties: tuple[int, ...]


class FreeCapacity(free_amounts.FreeAmounts):
    """Free amounts and remaining candidates while choices are made.

    :param field: hosts and candidates before the first choice.

    :ivar here: (v,) whether each candidate remains.
    """

    def __init__(self, field: VictimCandidates) -> None:
        super().__init__(field.free)
        self.field = field
        self.here: Marks = np.ones(len(field.servers), dtype=bool)

    def copy(self) -> 'FreeCapacity':
        """Return a copy that can be changed independently."""
        other = FreeCapacity.__new__(FreeCapacity)
        other.field = self.field
        other.free, other.here = self.free.copy(), self.here.copy()
        return other

    def leave(self, party: int) -> None:
        """Remove a candidate, and free its amounts."""
        for entry in np.flatnonzero(self.field.party == party):
            self.give_back(self.field.row[entry], self.field.amounts[entry])
        self.here[party] = False

    def put_back(self, party: int) -> bool:
        """Keep a victim if the room that it freed is not used.

        :returns: whether the victim stays.
        """
        entries = np.flatnonzero(self.field.party == party)
        rows, amounts = self.field.row[entries], self.field.amounts[entries]
        if not self.having(rows, amounts.T).all():
            return False
        for row, amount in zip(rows, amounts, strict=True):
            self.take(row, amount)
        self.here[party] = True
        return True

    def place(self, piece: Piece, row: int) -> None:
        """Use room on a host for one server of a piece."""
        self.take(row, piece.amounts)

    def carry_out(self, need: Need, choice: VictimChoice) -> None:
        """Remove the victims of a choice, and place the pieces of its need."""
        for party in choice.parties:
            if self.here[party]:
                self.leave(party)
        for piece, rows in zip(need.pieces, choice.rows, strict=True):
            for row in rows:
                self.place(piece, row)

    def fits(self, piece: Piece, rows: Marks) -> Rows:
        """Return the rows of the marked hosts that have room for one
        server.
        """
        found = np.flatnonzero(rows)
        return found[self.having(found, piece.amounts[:, np.newaxis])]

    def entries(self, piece: Piece, rows: Marks, may: Marks) -> Rows:
        """Return entries on hosts that have room for one server without all
        candidates.

        :param piece: the piece of the server.
        :param rows: (p,) hosts on which the server may be.
        :param may: (v,) parties that may leave.
        """
        field, asked = self.field, np.flatnonzero(piece.amounts > 0)
        found = np.flatnonzero(may[field.party] & rows[field.row])
        row = field.row[found]
        free = self.free[asked].T.copy()
        np.add.at(free, row, field.amounts[found][:, asked])
        is_enough = np.asarray((free >= piece.amounts[asked]).all(axis=1))
        return np.asarray(found[is_enough[row]], dtype=np.intp)


def price(
    field: VictimCandidates, choices: Sequence[VictimChoice | None]
) -> float:
    """Return the sum of the prices of all victims of choices."""
    left = sorted({v for each in choices if each for v in each.parties})
    return float(field.price[left].sum())


def assigned(
    field: VictimCandidates,
    rows: Sequence[tuple[tuple[int, ...], ...]],
    parties: Iterable[int],
) -> list[VictimChoice]:
    """Return choices in which each victim is evicted for the first need on its
    host.

    :param rows: rows of hosts, for every piece of every need.
    :param parties: parties that leave for all needs together.
    """
    left, choices = set(parties), []
    for hosts in rows:
        mine = np.isin(field.row, [row for each in hosts for row in each])
        those = sorted(left & set(field.party[mine].tolist()))
        left -= set(those)
        choices.append(VictimChoice(hosts, tuple(those)))
    return choices
