# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import pytest

from fairness_lab.queue_sim import published_victims
from nova_fairness.planners.preemption import candidates


def one_host(amounts, free=(0, 0)):
    """A full host whose parties have amounts of two classes."""
    count = len(amounts)
    return candidates.VictimCandidates(
        free=np.array(free, np.int64)[:, np.newaxis],
        party=np.arange(count),
        row=np.zeros(count, np.intp),
        amounts=np.array(amounts, np.int64),
        servers=tuple((f's{n}',) for n in range(count)),
        owner=np.zeros(count, np.intp),
        since=np.arange(count, dtype=float),
        price=np.ones(count),
        level=np.ones(1),
        step=np.zeros(count),
        now=1e6,
    )


def chosen(strategy, amounts, asked, free=(0, 0)):
    """Parties that leave for one server."""
    field = one_host(amounts, free)
    piece = candidates.Piece(np.array(asked, np.int64), np.ones(1, bool))
    everyone = np.ones(len(amounts), bool)
    need = candidates.Need((piece,), np.ones(1, np.int64), everyone)
    [found] = strategy.choose([need], field)
    return sorted(found.parties)


def test_strict_combines_more_than_ten_servers_of_a_host():
    amounts = [(2, 2)] * 30 + [(5, 5)]
    assert chosen(published_victims.Strict(), amounts, (7, 7)) == [0, 30]
    assert chosen(published_victims.Strict(), amounts, (6, 6)) == [0, 1, 2]


@pytest.mark.parametrize('seed', range(10))
def test_strict_leaves_as_little_free_as_the_best_combination(seed):
    source = np.random.default_rng(seed)
    amounts = source.integers(1, 9, (9, 2)).tolist()
    asked = np.sum(amounts, axis=0) // 2
    found = chosen(published_victims.Strict(), amounts, asked)
    sums = [
        np.sum(some, axis=0)
        for n in range(1, len(amounts) + 1)
        for some in itertools.combinations(amounts, n)
    ]
    best = min(tuple(each - asked) for each in sums if (each >= asked).all())
    got = np.sum([amounts[n] for n in found], axis=0)
    assert tuple(got - asked) == best


def test_strict_time_prefers_the_oldest_servers():
    amounts = [(2, 2)] * 20
    found = chosen(published_victims.StrictTime(), amounts, (4, 4))
    assert found == [0, 1]


def test_strict_bounds_the_number_of_sums(monkeypatch):
    monkeypatch.setattr(published_victims, '_MOST_SUMS', 3)
    amounts = [(1, 1), (2, 2), (4, 4), (8, 8)]
    field = one_host(amounts)
    found = chosen(published_victims.Strict(), amounts, (15, 15))
    assert np.sum(field.amounts[found], axis=0).min() >= 15
