# SPDX-License-Identifier: Apache-2.0

"""Where HiGHS is not installed, it is said what is missing."""

import sys

import numpy as np
import pytest

from fairness_lab.ideal import highs
from fairness_lab.ideal import program
from nova_fairness import exception


def test_the_extra_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'highspy', None)
    with pytest.raises(exception.SimError, match=r'nova-fairness\[sim\]'):
        highs.LinearProgram(np.ones(1), np.ones(1), None)


def test_the_solver_writes_no_banner(capfd):
    matrix = highs.Matrix(
        program.SparseEntries(np.array([0]), np.array([0]), np.ones(1)),
        lower=np.ones(1),
        upper=np.full(1, 2.0),
    )
    solver = highs.LinearProgram(np.ones(1), np.full(1, 3.0), matrix)
    solver.solve()
    solver.change_row(0, 0.5, 2.0)
    solver.solve()
    assert capfd.readouterr() == ('', '')
