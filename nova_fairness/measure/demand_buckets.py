# SPDX-License-Identifier: Apache-2.0

"""How much of their vCPUs VMs want: sizes that a kernel weighs, by wants.

A kernel gives VMs by their vCPUs, whatever they want of them. So ten vCPUs
that want a tenth each and one that wants all of it are not the same, although
they want as much. The VMs of a user on a node are sorted by how much of a vCPU
they want, and divided into grades of VMs that want alike: of few kinds of VMs
each is told, of many next to nothing is lost.

At a level ``x`` a user gets ``f(x) = sum(min(wanted, x * vcpus))`` of a node.
It is a concave function with a bend at the want of each VM per vCPU. Grades
replace it by one with fewer bends, which is nowhere smaller. Bends are chosen
so that all pieces are equally far off: as many in an interval as the integral
of the square root of the second derivative says (C. de Boor, "Good
approximation by splines with variable knots", 1973).
"""

import numpy as np

from nova_fairness.model import node as node_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_EVEN = 4
"""Times that wide gaps are cut to one grade, which leaves more for others."""

_TRIES = 6
"""Times that grades are laid out."""

_FLOOR = 0.2
"""Part of its length that a gap between two grades keeps if its grade loses
nothing. The case is 2 busy VMs among 30 that want 0.05 CPUs."""


def graded(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> resources.Vector:
    """Sum vCPUs and what they want by cell and grade.

    :param cell: (n,) index of each VM's cell: its user, or user and node.
    :param vcpus: (n,) >= 1.
    :param wanted: (n,) CPUs, >= 0.
    :param cells: number of cells.
    :returns: (cells, 2g) vCPUs of each grade, then CPUs that they want.
    """
    none = np.zeros(len(cell), dtype=np.bool_)
    return with_exempt(cell, vcpus, wanted, cells, none)[0]


def with_exempt(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
    exempt: resources.Mask,
) -> tuple[resources.Vector, resources.Vector]:
    """As :func:`graded`, and what of it is of VMs that are not steered.

    :param exempt: (n,) these VMs.
    :returns: twice (cells, 2g).
    """
    order = np.lexsort((wanted / vcpus, cell))
    place = cell[order] * report.GRADES + _grade(
        cell[order], vcpus[order], wanted[order], cells
    )
    every = _summed(place, vcpus[order], wanted[order], cells)
    left, rows = exempt[order], order[exempt[order]]
    return every, _summed(place[left], vcpus[rows], wanted[rows], cells)


def _summed(
    place: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> resources.Vector:
    """Add up grades, (cells, 2g).

    :param place: (n,) cell x g + grade of each VM.
    """
    grades = report.GRADES
    return np.concatenate(
        [
            np.bincount(place, values, cells * grades).reshape(cells, grades)
            for values in (vcpus, wanted)
        ],
        axis=1,
    )


def _grade(
    cell: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    cells: int,
) -> usage_model.Indices:
    """Number of each VM's grade; rows are sorted by cell, then by part.

    A gap between two VMs has a length by which grades are laid out: first the
    square root of the loss if both are in one grade. Then gaps of grades that
    lose more than others become longer. The layout with the least loss counts.
    """
    first = np.ones(len(cell), dtype=np.bool_)
    first[1:] = cell[1:] != cell[:-1]
    before = np.append(0.0, vcpus[:-1])
    gap = np.diff(wanted / vcpus, prepend=0.0).clip(0.0)
    length = np.sqrt(gap * vcpus * before / (vcpus + before))
    length[first] = 0.0
    best = np.zeros(len(cell), dtype=np.intp)
    least = np.full(cells, np.inf)
    for _ in range(_TRIES):
        grade = _laid_out(cell, first, length, cells)
        place = cell * report.GRADES + grade
        lost = _lost(place, vcpus, wanted, cells * report.GRADES)
        worst = lost.reshape(cells, report.GRADES).max(axis=1)
        better = worst < least
        least = np.where(better, worst, least)
        best = np.where(better[cell], grade, best)
        share = np.sqrt(lost[place] / np.where(worst > 0, worst, 1.0)[cell])
        length = length * (_FLOOR + share)
    return best


def _laid_out(
    cell: usage_model.Indices,
    first: resources.Mask,
    length: usage_model.Scalars,
    cells: int,
) -> usage_model.Indices:
    """Divide the way from each cell's first row to its last evenly.

    No gap counts for more than one grade.
    """
    most = report.GRADES - 1
    for _ in range(_EVEN):
        whole = np.bincount(cell, length, cells)
        length = np.minimum(length, (whole / most)[cell])
    whole = np.bincount(cell, length, cells)
    so_far = np.cumsum(length)
    start = so_far[first][np.cumsum(first) - 1]
    way = (so_far - start) * most / np.where(whole > 0, whole, 1.0)[cell]
    grade = np.minimum(np.rint(way), most)
    return np.asarray(grade, dtype=np.intp)


def _lost(
    place: usage_model.Indices,
    vcpus: usage_model.Scalars,
    wanted: usage_model.Scalars,
    count: int,
) -> usage_model.Scalars:
    """By how much each grade is larger than its VMs, at most: CPUs."""
    total = np.bincount(place, vcpus, count)
    level = np.bincount(place, wanted, count) / np.where(total > 0, total, 1.0)
    over = (wanted - level[place] * vcpus).clip(0.0)
    return np.asarray(np.bincount(place, over, count))


def of_node(
    usage: usage_model.Usage,
    wanted: resources.Vector,
    owners: usage_model.Ownership,
    node: node_model.NodeResources,
    exempt: resources.Mask,
) -> tuple[resources.Vector, resources.Vector | None]:
    """Grade the vCPUs of a node's VMs.

    :param wanted: (n, r) amounts of the interval.
    :param exempt: (n,) VMs that are not steered.
    :returns: (u, 2g), and the part of VMs that are not steered; ``None`` if
        there are none.
    """
    vcpus = np.array(
        [item.instance.vcpus for item in usage.incarnations], dtype=np.float64
    )
    cpu = resources.RESOURCES.index('cpu_time')
    one_cpu = node.speed_factor * usage.interval_s
    every, left = with_exempt(
        owners.user_index,
        vcpus,
        np.minimum(wanted[:, cpu] / one_cpu, vcpus),
        len(owners.users),
        exempt,
    )
    return every, left if exempt.any() else None
