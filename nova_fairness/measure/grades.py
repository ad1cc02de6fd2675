# SPDX-License-Identifier: Apache-2.0

"""How much of their vCPUs VMs want: what a kernel weighs, by what is wanted.

A kernel gives VMs by their vCPUs, whatever they want of them. So ten vCPUs
that want a tenth each and one that wants all of it are not the same, although
they want as much. The VMs of a user on a node are sorted by how much of a vCPU
they want, and divided into grades of as many VMs each: of few VMs each is
told, of many next to nothing is lost.
"""

import numpy as np

from nova_fairness.model import node as node_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


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
    grades = report.GRADES
    order = np.lexsort((wanted / vcpus, cell))
    size = np.bincount(cell, minlength=cells)
    here = cell[order]
    rank = np.arange(len(order)) - (np.cumsum(size) - size)[here]
    place = here * grades + rank * grades // np.maximum(size[here], grades)
    return np.concatenate(
        [
            np.bincount(place, values[order], cells * grades).reshape(
                cells, grades
            )
            for values in (vcpus, wanted)
        ],
        axis=1,
    )


def of_node(
    usage: usage_model.Usage,
    wanted: resources.Vector,
    owners: usage_model.Ownership,
    node: node_model.NodeResources,
) -> resources.Vector:
    """Grade the vCPUs of a node's VMs.

    :param wanted: (n, r) amounts of the interval.
    :returns: (u, 2g).
    """
    vcpus = np.array(
        [item.instance.vcpus for item in usage.incarnations], dtype=np.float64
    )
    cpu = resources.RESOURCES.index('cpu_time')
    one_cpu = node.speed_factor * usage.interval_s
    return graded(
        owners.user_index,
        vcpus,
        np.minimum(wanted[:, cpu] / one_cpu, vcpus),
        len(owners.users),
    )
