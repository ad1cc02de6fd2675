# SPDX-License-Identifier: Apache-2.0

"""Linear systems against those that numpy solves."""

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.shares import krylov


def system(seed, size, off=0.3):
    """Draw a nonsymmetric one whose diagonal outweighs the rest."""
    chance = np.random.default_rng(seed)
    matrix = chance.normal(0, off, (size, size)) / size
    diagonal = chance.uniform(0.5, 50, size)
    matrix += np.diag(diagonal)
    return matrix, chance.normal(0, 10, size), diagonal


@given(strategies.integers(0, 2**32 - 1), strategies.integers(1, 40))
def test_the_iterative_solution_equals_the_direct_one(seed, size):
    matrix, right, diagonal = system(seed, size)
    found = krylov.solve(lambda x: matrix @ x, right, diagonal)
    rest = np.abs(right - matrix @ found).max()
    assert rest <= krylov.CLOSE * np.abs(right).max() * 1.01
    exact = np.linalg.solve(matrix, right)
    assert found == pytest.approx(exact, rel=0.05, abs=1.0)


def test_a_less_diagonal_system_needs_more_products():
    matrix, right, diagonal = system(1, 30, off=20.0)
    asked = []

    def product(x):
        asked.append(1)
        return matrix @ x

    found = krylov.solve(product, right, diagonal)
    rest = np.abs(right - matrix @ found).max()
    assert rest <= krylov.CLOSE * np.abs(right).max() * 1.01
    assert 2 < len(asked) <= krylov.MOST_PRODUCTS


def test_a_zero_right_side_has_a_zero_solution():
    found = krylov.solve(lambda x: 1 / 0, np.zeros(3), np.ones(3))
    assert found.tolist() == [0, 0, 0]


def test_a_system_without_unknowns_has_an_empty_solution():
    assert not krylov.solve(lambda x: x, np.zeros(0), np.ones(0)).size


def rotation(x):
    return np.array([-x[1], x[0]])


BREAKDOWNS = {
    'a turn by a right angle': (rotation, [1.0, 0.0]),
    'a map to nothing': (np.zeros_like, [1.0, 2.0]),
    'a singular map': (lambda x: np.array([x.sum(), x.sum()]), [1.0, 2.0]),
    'no numbers': (lambda x: x * np.nan, [1.0, 2.0]),
    'beyond numbers': (lambda x: x * 1e300, [1e200, 2.0]),
}


@pytest.mark.parametrize(
    ('product', 'right'), BREAKDOWNS.values(), ids=BREAKDOWNS
)
@pytest.mark.filterwarnings('ignore:overflow', 'ignore:invalid')
def test_a_breakdown_of_the_solver_is_no_worse_than_zero(product, right):
    right = np.array(right)
    found = krylov.solve(product, right, np.ones(2))
    assert np.isfinite(found).all()
    if found.any():
        rest = np.abs(right - product(found)).max()
        assert rest <= np.abs(right).max()


def test_a_bounded_solver_returns_its_best_iterate(monkeypatch):
    matrix, right, diagonal = system(1, 30, off=20.0)
    monkeypatch.setattr(krylov, 'MOST_PRODUCTS', 2)
    found = krylov.solve(lambda x: matrix @ x, right, diagonal)
    rest = np.abs(right - matrix @ found).max()
    assert krylov.CLOSE * np.abs(right).max() < rest < np.abs(right).max()
