# SPDX-License-Identifier: Apache-2.0

"""Rules of every choice of victims, as tests for its author.

A test module of a plugin needs no more than this::

    class TestMyVictims(victims_contract.VictimsContract):
        victims = MyVictims()
"""

from collections.abc import Iterator
from collections.abc import Sequence
import copy

import numpy as np

from nova_fairness.model import wording
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import victims as victims_base

_CASES = 12
_NOW = 1e6

Needs = Sequence[candidates.Need]
Case = tuple[Needs, candidates.VictimCandidates]


def make_case(
    seed: int, hosts: int = 4, parties: int = 4, needs: int = 3
) -> Case:
    """Create a full cloud of CPUs and memory, and needs without room.

    :param seed: seed of the cloud: different numbers create different clouds.
    :param hosts: number of hosts.
    :param parties: number of candidates on each host.
    :param needs: number of needs, of one or two servers each.
    """
    source = np.random.default_rng(seed)
    count = hosts * parties
    amounts = source.integers(1, 5, (count, 2)) * np.array([1, 4])
    owners = 5
    since = _NOW - source.integers(600, 500_000, count).astype(float)
    part = amounts.max(axis=1) / (count * 10.0)
    level = np.exp2(source.integers(-2, 4, owners).astype(float))
    owner = source.integers(0, owners, count)
    behind = 3 - np.clip(np.floor(np.log2(level)), 0, 3)
    price = part * (_NOW - since + 86400.0 * behind[owner]) + 0.1
    field = candidates.VictimCandidates(
        free=source.integers(0, 2, (2, hosts)) * np.array([[1], [4]]),
        party=np.arange(count, dtype=np.intp),
        row=np.repeat(np.arange(hosts, dtype=np.intp), parties),
        amounts=amounts.astype(np.int64),
        servers=tuple((f's{n:05}',) for n in range(count)),
        owner=owner.astype(np.intp),
        since=since,
        price=price,
        level=level,
        step=part * owners,
        now=_NOW,
    )
    may = np.ones(count, dtype=bool)
    every = np.ones(hosts, dtype=bool)
    asked = []
    for _ in range(needs):
        size = source.integers(2, 6, 2) * np.array([1, 4])
        servers = int(source.integers(1, 3))
        piece = candidates.Piece(size.astype(np.int64), every, servers)
        limit = np.full(hosts, servers)
        asked.append(candidates.Need((piece,), limit, may))
    return asked, field


def cases() -> Iterator[Case]:
    """Yield the clouds for which every plugin must return a result."""
    for seed in range(_CASES):
        yield make_case(seed)
    needs, field = make_case(0)
    yield [], field
    none = np.zeros(len(field.servers), dtype=bool)
    yield [candidates.Need(e.pieces, e.limit, none) for e in needs], field


class VictimsContract:
    """Tests of one plugin; subclasses set :attr:`victims`.

    A name that starts with ``Test`` makes pytest collect the subclass.
    """

    victims: victims_base.Victims

    def test_description_is_one_line(self) -> None:
        """The description fits into a list for operators."""
        text = self.victims.description
        if not text or '\n' in text:
            raise AssertionError(f'description is {text!r}')

    def test_victims_may_leave_and_make_room(self) -> None:
        """The victims may be evicted, free enough room, and are chosen
        once.
        """
        for needs, field in cases():
            pool = candidates.FreeCapacity(field)
            found = self.victims.choose(needs, field)
            if len(found) != len(needs):
                raise AssertionError(
                    'the plugin must return one choice per need:'
                    f' {wording.counted(len(needs), "need")}, got'
                    f' {wording.counted(len(found), "choice")}'
                )
            for need, choice in zip(needs, found, strict=True):
                if choice is not None:
                    _check(need, choice, pool)

    def test_the_same_is_chosen_again(self) -> None:
        """The choice depends on the arguments only, without randomness."""
        for needs, field in cases():
            first = self.victims.choose(needs, field)
            if self.victims.choose(needs, field) != first:
                raise AssertionError(
                    'the same needs got different choices in two calls'
                )

    def test_arguments_are_not_changed(self) -> None:
        """The plugin does not change its arguments, which other code
        reads later.
        """
        for needs, field in cases():
            given = copy.deepcopy(field)
            self.victims.choose(needs, given)
            for name in ('free', 'amounts', 'price', 'level', 'step'):
                np.testing.assert_array_equal(
                    getattr(given, name), getattr(field, name)
                )


def _check(
    need: candidates.Need,
    choice: candidates.VictimChoice,
    pool: candidates.FreeCapacity,
) -> None:
    for party in choice.parties:
        if not (need.may[party] and pool.here[party]):
            raise AssertionError(f'party {party} may not leave')
        pool.leave(party)
    for piece, rows in zip(need.pieces, choice.rows, strict=True):
        if len(rows) != piece.count:
            raise AssertionError(
                'a piece must have one host per server:'
                f' {wording.counted(piece.count, "server")}, got'
                f' {wording.counted(len(rows), "host")}'
            )
        for row in rows:
            if row not in pool.fits(piece, piece.rows):
                raise AssertionError(f'host {row} has no room')
            pool.place(piece, row)
