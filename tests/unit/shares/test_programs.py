# SPDX-License-Identifier: Apache-2.0

"""Choices against all there are."""

import inspect
import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.shares import programs


@st.composite
def costs(draw):
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(rows, 5))
    size = rows * columns
    cost = draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
    allowed = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    shape = (rows, columns)
    return np.reshape(cost, shape).astype(float), np.reshape(allowed, shape)


@given(costs())
def test_an_assignment_has_the_least_cost_of_all_allowed(drawn):
    cost, allowed = drawn
    rows = range(len(cost))
    sums = [
        sum(cost[row, each[row]] for row in rows)
        for each in itertools.permutations(range(cost.shape[1]), len(cost))
        if all(allowed[row, each[row]] for row in rows)
    ]
    if not sums:
        with pytest.raises(exception.SolverFailed, match='no assignment'):
            programs.assign(cost, allowed)
        return
    found = programs.assign(cost, allowed)
    assert len(set(found)) == len(cost)
    assert allowed[rows, found].all()
    assert cost[rows, found].sum() == min(sums)


def test_without_marks_all_pairs_are_allowed():
    cost = np.array([[1.0, 2.0], [1.0, 5.0]])
    assert programs.assign(cost).tolist() == [1, 0]


def dense(matrix, lower, upper):
    matrix = np.array(matrix, float)
    row, column = np.nonzero(matrix)
    return programs.ProgramRows(
        row,
        column,
        matrix[row, column],
        np.array(lower, float),
        np.array(upper, float),
    )


@st.composite
def covers(draw):
    """What others have, and how much of it is needed: who gives it?"""
    columns, rows = draw(st.integers(1, 6)), draw(st.integers(1, 2))
    number = st.integers(0, 5)
    cost = draw(
        st.lists(st.integers(1, 9), min_size=columns, max_size=columns)
    )
    line = st.lists(number, min_size=columns, max_size=columns)
    matrix = draw(st.lists(line, min_size=rows, max_size=rows))
    need = draw(st.lists(st.integers(0, 12), min_size=rows, max_size=rows))
    return np.array(cost, float), np.array(matrix), np.array(need)


@settings(deadline=None, max_examples=60)
@given(covers())
def test_a_cover_has_the_least_cost_for_the_need(drawn):
    cost, matrix, need = drawn
    sums = [
        float(cost @ each)
        for each in itertools.product((0, 1), repeat=len(cost))
        if (matrix @ each >= need).all()
    ]
    rows = dense(matrix, need, np.full(len(need), np.inf))
    if not sums:
        with pytest.raises(exception.SolverFailed, match='expected a choice'):
            programs.solve_integer_program(cost, np.ones(len(cost)), rows)
        return
    found = programs.solve_integer_program(cost, np.ones(len(cost)), rows)
    assert set(found.chosen) <= {0, 1}
    assert (matrix @ found.chosen >= need).all()
    assert found.cost == min(sums)
    assert found.cost == pytest.approx(found.bound, abs=1e-6)


def test_whole_numbers_above_one_are_chosen_too():
    rows = dense([[3.0]], [7.0], [np.inf])
    found = programs.solve_integer_program(
        np.array([2.0]), np.array([9.0]), rows
    )
    assert found.chosen.tolist() == [3]
    assert (found.cost, found.bound) == (6.0, pytest.approx(6.0))


def test_a_solver_without_time_returns_nothing():
    chance = np.random.default_rng(1)
    matrix = chance.integers(1, 100, (20, 60))
    rows = dense(matrix, matrix.sum(axis=1) / 2 + 0.5, np.full(20, np.inf))
    cost = chance.integers(1, 100, 60).astype(float)
    assert (
        programs.solve_integer_program(cost, np.ones(60), rows, longest_s=0.0)
        is None
    )
    assert (
        programs.solve_integer_program(cost, np.ones(60), rows, nodes=1)
        is not None
    )


def sorts(*most):
    return programs.Sorts(np.array(most), np.ones(len(most)))


def test_parts_cover_all_and_prices_say_why_it_takes_so_many():
    sets, least = np.array([[2, 0], [0, 2], [1, 1]]), np.array([3, 1])
    found = programs.cover_kinds(sets, np.array([0, 0, 0]), least, sorts(9))
    assert found.is_whole
    assert found.parts.sum() == pytest.approx(2.0)
    assert (sets.T @ found.parts >= least - 1e-9).all()
    assert (sets @ found.price <= 1 + found.rent + 1e-9).all()
    assert found.price @ least == pytest.approx(2.0)


def test_a_need_that_no_set_covers_is_reported():
    one = np.array([[1, 0]])
    least, of = np.array([1, 1]), np.array([0])
    assert not programs.cover_kinds(one, of, least, sorts(9)).is_whole


def test_one_more_of_a_sort_is_worth_its_saving():
    sets = np.array([[4, 0], [1, 0], [0, 1]])
    least = np.array([8, 1])
    found = programs.cover_kinds(sets, np.array([0, 1, 1]), least, sorts(1, 9))
    assert found.is_whole
    assert found.parts.tolist() == pytest.approx([1.0, 4.0, 1.0])
    assert found.rent.tolist() == pytest.approx([3.0, 0.0])


def test_a_transport_sends_as_much_as_there_is_room():
    supply, room = np.array([3, 2, 0]), np.array([2, 9, 1])
    allowed = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    sent = programs.transport(supply, room, allowed)
    assert sent.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 0]]
    none = programs.transport(supply, room, np.zeros((3, 3), dtype=bool))
    assert none.sum() == 0


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_a_transport_sends_as_much_as_any_cut_lets_through(
    supply, room, pairs
):
    allowed = np.array(pairs).reshape(3, 3)[: len(supply), : len(room)]
    sent = programs.transport(np.array(supply), np.array(room), allowed)
    assert (sent >= 0).all()
    assert not sent[~allowed].any()
    assert (sent.sum(axis=1) <= supply).all()
    assert (sent.sum(axis=0) <= room).all()
    # Of all sets of kinds: those outside, and the places they may go to.
    cuts = [
        sum(n for n, stays in zip(supply, chosen, strict=True) if not stays)
        + sum(
            n
            for m, n in enumerate(room)
            if any(allowed[k, m] for k, stays in enumerate(chosen) if stays)
        )
        for chosen in itertools.product([True, False], repeat=len(supply))
    ]
    assert sent.sum() == min(cuts)


@pytest.mark.parametrize('name', ['assign', 'transport', 'choose', 'cover'])
def test_no_solver_writes_on_the_terminal(name, capfd):
    programs_of = {
        'assign': lambda: programs.assign(np.eye(3)),
        'transport': lambda: programs.transport(
            np.ones(2, int), np.ones(2, int), np.ones((2, 2), bool)
        ),
        'choose': lambda: programs.solve_integer_program(
            np.ones(2), np.ones(2), dense([[1, 1]], [1], [2])
        ),
        'cover': lambda: programs.cover_kinds(
            np.ones((2, 1), int),
            np.zeros(2, int),
            np.ones(1, int),
            programs.Sorts(np.ones(1), np.ones(1)),
        ),
    }
    programs_of[name]()
    assert capfd.readouterr() == ('', '')


def test_every_solver_is_tried_on_the_terminal():
    solving = {
        name
        for name, each in vars(programs).items()
        if inspect.isfunction(each)
        and each.__module__ == programs.__name__
        and 'import' in inspect.getsource(each)
    }
    assert solving == {'assign', 'transport', 'choose', 'cover'}
