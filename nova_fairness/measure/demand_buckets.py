# SPDX-License-Identifier: Apache-2.0

"""Groups the vCPUs of VMs by the part of a vCPU that each VM wants.

A kernel divides CPU time by vCPUs, whatever the VMs want. So ten vCPUs that
want a tenth each differ from one that wants all, although the sum is equal.
The VMs of a user on a node are sorted by their want per vCPU and divided into
grades of VMs with similar wants. A few kinds of VMs are reported exactly, and
many with a small loss. At a level ``x`` a user gets ``f(x) = sum(min(wanted, x
* vcpus))`` of a node. It is a concave function with a bend at the want of each
VM per vCPU. Grades replace it by one with fewer bends, which is nowhere
smaller. Bends are placed so that all pieces have the same error: their density
is the square root of the second derivative (C. de Boor, "Good approximation by
splines with variable knots", 1973).
"""

import numpy as np

from nova_fairness.model import node as node_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_CAP_ROUNDS = 4
"""Number of times that wide gaps are cut to the width of one grade, which
leaves more grades for the others."""

_LAYOUT_ROUNDS = 6
"""Number of times that the grades are laid out."""

_MIN_GAP_PART = 0.2
"""Part of its length that a gap between two grades keeps if its grade has
no loss. The case is 2 busy VMs among 30 that want 0.05 CPUs."""


def sum_by_grade(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> resources.Vector:
    """Sum vCPUs and wanted CPUs by cell and grade.

    :param cell: (n,) index of each VM's cell: its user, or user and node.
    :param vcpus: (n,) >= 1.
    :param wanted: (n,) CPUs, >= 0.
    :param cells: number of cells.
    :returns: (cells, 2g) vCPUs of each grade, then wanted CPUs of each grade.
    """
    none = np.zeros(len(cell), dtype=np.bool_)
    return sum_by_grade_with_exempt(cell, vcpus, wanted, cells, none)[0]


def sum_by_grade_with_exempt(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
    exempt: resources.Mask,
) -> tuple[resources.Vector, resources.Vector]:
    """Return the result of :func:`sum_by_grade` for all and for exempt VMs.

    :param exempt: (n,) which VMs are not steered.
    :returns: twice (cells, 2g).
    """
    order = np.lexsort((wanted / vcpus, cell))
    place = cell[order] * report.GRADES + _grade_of_vms(
        cell[order], vcpus[order], wanted[order], cells
    )
    every = _sum_grades(place, vcpus[order], wanted[order], cells)
    left, rows = exempt[order], order[exempt[order]]
    return every, _sum_grades(place[left], vcpus[rows], wanted[rows], cells)


def _sum_grades(
    grade_cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> resources.Vector:
    """Sum vCPUs and wanted CPUs by grade, (cells, 2g).

    :param grade_cell: (n,) cell x g + grade of each VM.
    """
    grades = report.GRADES
    return np.concatenate(
        [
            np.bincount(grade_cell, values, cells * grades).reshape(
                cells, grades
            )
            for values in (vcpus, wanted)
        ],
        axis=1,
    )


def _grade_of_vms(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> usage_model.Indices:
    """Return the number of each VM's grade; rows are sorted by cell and want.

    A gap between two VMs has a length by which grades are laid out. It starts
    as the square root of the loss if both are in one grade. Then gaps of
    grades with a larger loss become longer. The layout with the smallest loss
    is returned.
    """
    first = np.ones(len(cell), dtype=np.bool_)
    first[1:] = cell[1:] != cell[:-1]
    before = np.append(0.0, vcpus[:-1])
    gap = np.diff(wanted / vcpus, prepend=0.0).clip(0.0)
    length = np.sqrt(gap * vcpus * before / (vcpus + before))
    length[first] = 0.0
    best = np.zeros(len(cell), dtype=np.intp)
    least = np.full(cells, np.inf)
    for _ in range(_LAYOUT_ROUNDS):
        grade = _lay_out_grades(cell, first, length, cells)
        place = cell * report.GRADES + grade
        lost = _loss_by_grade(place, vcpus, wanted, cells * report.GRADES)
        worst = lost.reshape(cells, report.GRADES).max(axis=1)
        better = worst < least
        least = np.where(better, worst, least)
        best = np.where(better[cell], grade, best)
        share = np.sqrt(lost[place] / np.where(worst > 0, worst, 1.0)[cell])
        length = length * (_MIN_GAP_PART + share)
    return best


def _lay_out_grades(
    cell: usage_model.Indices,
    first: resources.Mask,
    length: usage_model.Scalars,
    cells: int,
) -> usage_model.Indices:
    """Divide the total length of each cell's gaps evenly into grades.

    No gap counts for more than one grade.
    """
    most = report.GRADES - 1
    for _ in range(_CAP_ROUNDS):
        whole = np.bincount(cell, length, cells)
        length = np.minimum(length, (whole / most)[cell])
    whole = np.bincount(cell, length, cells)
    so_far = np.cumsum(length)
    start = so_far[first][np.cumsum(first) - 1]
    way = (so_far - start) * most / np.where(whole > 0, whole, 1.0)[cell]
    grade = np.minimum(np.rint(way), most)
    return np.asarray(grade, dtype=np.intp)


def _loss_by_grade(
    grade_cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    count: int,
) -> usage_model.Scalars:
    """Return the largest excess of each grade over its VMs' wants, in CPUs."""
    total = np.bincount(grade_cell, vcpus, count)
    level = np.bincount(grade_cell, wanted, count) / np.where(
        total > 0, total, 1.0
    )
    over = (wanted - level[grade_cell] * vcpus).clip(0.0)
    return np.asarray(np.bincount(grade_cell, over, count))


def grades_of_node(
    usage: usage_model.Usage,
    wanted: resources.Vector,
    owners: usage_model.Ownership,
    node: node_model.NodeResources,
    exempt: resources.Mask,
) -> tuple[resources.Vector, resources.Vector | None]:
    """Sum the vCPUs and wanted CPUs of a node's VMs by user and grade.

    :param wanted: (n, r) amounts of the interval.
    :param exempt: (n,) which VMs are not steered.
    :returns: (u, 2g) of all VMs, and of exempt VMs; ``None`` if there are
        none.
    """
    vcpus = np.array(
        [item.instance.vcpus for item in usage.incarnations], dtype=np.float64
    )
    cpu = resources.RESOURCES.index('cpu_time')
    one_cpu = node.speed_factor * usage.interval_s
    every, left = sum_by_grade_with_exempt(
        owners.user_index,
        vcpus,
        np.minimum(wanted[:, cpu] / one_cpu, vcpus),
        len(owners.users),
        exempt,
    )
    return every, left if exempt.any() else None
