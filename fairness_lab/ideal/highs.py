# SPDX-License-Identifier: Apache-2.0

"""The LP solver HiGHS behind the three calls that the ideal needs."""

import dataclasses
from typing import Any

import numpy as np

from fairness_lab.ideal import program as program_module
from nova_fairness import exception

TOLERANCE = 1e-9
"""How far a solution may be outside a row, and a price from its sign."""

Floats = program_module.Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Matrix:
    """The rows of a linear program: ``lower <= A x <= upper``.

    :ivar entries: of A.
    :ivar lower: (rows,), may be infinite.
    :ivar upper: (rows,), may be infinite.
    """

    entries: program_module.SparseEntries
    lower: Floats
    upper: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """A solution of least cost.

    :ivar value: (c,) of the columns.
    :ivar row_price: (rows,) what one unit of a row's bound more would cost;
        >= 0 at a lower bound, <= 0 at an upper one.
    :ivar column_price: (c,) what one unit of a column more would cost; > 0
        only at its lower end, < 0 only at its upper one.
    :ivar cost: of the solution.
    """

    value: Floats
    row_price: Floats
    column_price: Floats
    cost: float


class LinearProgram:
    """One linear program that is solved again with other bounds.

    :param cost: (c,) per unit of each column; the sum is made small.
    :param upper: (c,) upper ends of the columns; the lower ends are 0.
    :param matrix: the rows.
    :raises SolverFailed: if HiGHS does not take it.
    :raises SimError: if HiGHS is not installed.
    """

    def __init__(self, cost: Floats, upper: Floats, matrix: Matrix) -> None:
        try:
            # Only the ideal needs it, and it takes a while to load.
            import highspy
        except ImportError:
            raise exception.SimError(
                'the ideal needs HiGHS: pip install nova-fairness[sim]'
            ) from None

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._solver = _create_silent_solver(highspy.Highs)
        for name, value in (
            ('output_flag', False),
            ('threads', 1),
            ('primal_feasibility_tolerance', TOLERANCE),
            ('dual_feasibility_tolerance', TOLERANCE),
        ):
            self._solver.setOptionValue(name, value)
        taken = self._solver.passModel(
            _linear_program(highspy, cost, upper, matrix)
        )
        if taken == highspy.HighsStatus.kError:
            raise exception.SolverFailed('HiGHS refuses the linear program')

    def change_row(self, row: int, lower: float, upper: float) -> None:
        """Set new bounds of a row; the solver keeps its last solution."""
        self._solver.changeRowBounds(row, lower, upper)

    def solve(self) -> Solution:
        """Find a solution of least cost.

        :raises SolverFailed: if there is none or HiGHS gives up.
        """
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != self._optimal:
            text = self._solver.modelStatusToString(status)
            raise exception.SolverFailed(
                f'HiGHS ends with {text!r}, expected an optimal solution'
            )
        found = self._solver.getSolution()
        return Solution(
            value=np.array(found.col_value, dtype=np.float64),
            row_price=np.array(found.row_dual, dtype=np.float64),
            column_price=np.array(found.col_dual, dtype=np.float64),
            cost=float(self._solver.getInfo().objective_function_value),
        )


def _create_silent_solver(solver: Any) -> Any:
    """Create a solver without the output of a banner."""

    class QuietSolver(solver):  # type: ignore[misc]  # it has no types
        def enableCallbacks(self) -> None:  # noqa: N802 - the name is theirs
            self.silent()
            super().enableCallbacks()

    return QuietSolver()


def _linear_program(
    highspy: Any, cost: Floats, upper: Floats, matrix: Matrix
) -> Any:
    entries = matrix.entries.with_unique_places()
    counts = np.bincount(entries.column, minlength=len(cost))
    result = highspy.HighsLp()
    result.num_col_, result.num_row_ = len(cost), len(matrix.lower)
    result.col_cost_, result.col_upper_ = cost, upper
    result.col_lower_ = np.zeros(len(cost))
    result.row_lower_, result.row_upper_ = matrix.lower, matrix.upper
    result.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    result.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)])
    result.a_matrix_.index_ = entries.row
    result.a_matrix_.value_ = entries.value
    return result
