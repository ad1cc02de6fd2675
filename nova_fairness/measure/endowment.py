# SPDX-License-Identifier: Apache-2.0

"""The part of its node that a VM is entitled to.

The rule depends on the resource: a table by the resource's name, with an equal
division for every resource that flavors do not mention.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import types

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping

Column = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class EndowmentInput:
    """Input of the rules: the sizes of the VMs and their nodes.

    :ivar vcpus: (n,) >= 1.
    :ivar memory_bytes: (n,) > 0, of the flavor.
    :ivar node: (n,) index of the VM's node.
    :ivar nodes: number of nodes m.
    """

    vcpus: Column
    memory_bytes: Column
    node: usage_model.Indices
    nodes: int

    def node_totals(self, sizes: Column) -> Column:
        """Return the sum of a size over the node of each VM, (n,)."""
        sums = grouping.sum_by(self.node, sizes, self.nodes)
        return np.asarray(sums[self.node])


Rule = Callable[[EndowmentInput, Column], Column]
"""Function (placement, supply of one resource by node (m,)) -> endowment
(n,)."""


def divide_by_vcpus(placement: EndowmentInput, supply: Column) -> Column:
    """Divide the supply in proportion to the vCPUs (paper, section 4.1)."""
    part = placement.vcpus / placement.node_totals(placement.vcpus)
    return supply[placement.node] * part


def divide_by_memory(placement: EndowmentInput, supply: Column) -> Column:
    """Return the flavor's memory, reduced in proportion if it is
    overcommitted.

    Paper, section 5.2.1.
    """
    wanted = placement.node_totals(placement.memory_bytes)
    fitting = np.minimum(1.0, supply[placement.node] / wanted)
    return placement.memory_bytes * fitting


def divide_equally(placement: EndowmentInput, supply: Column) -> Column:
    """Divide the supply by the number of VMs (paper, section 5.2.1)."""
    instances = placement.node_totals(np.ones(len(placement.node)))
    return supply[placement.node] / instances


RULES: Mapping[str, Rule] = types.MappingProxyType(
    {'cpu_time': divide_by_vcpus, 'memory': divide_by_memory}
)
"""Rule by the name of the resource; :func:`divide_equally` for all others."""


def endowments(
    vcpus: npt.NDArray[np.int64] | Column,
    memory_bytes: npt.NDArray[np.int64] | Column,
    node_index: usage_model.Indices,
    supplies: resources.Vector,
    registry: resources.ResourceRegistry = resources.RESOURCES,
) -> resources.Vector:
    """Divide each node among its VMs.

    The sum of the endowments on a node never exceeds its supply.

    :param vcpus: (n,) >= 1.
    :param memory_bytes: (n,) > 0, of the flavor.
    :param node_index: (n,) index of each VM's node, < m.
    :param supplies: (m, r) of each node in the interval, >= 0.
    :param registry: the resources of the r columns.
    :returns: (n, r) finite, >= 0.
    """
    placement = EndowmentInput(
        vcpus=np.asarray(vcpus, dtype=np.float64),
        memory_bytes=np.asarray(memory_bytes, dtype=np.float64),
        node=node_index,
        nodes=len(supplies),
    )
    result = np.empty((len(node_index), len(registry)))
    for column, name in enumerate(registry.names):
        rule = RULES.get(name, divide_equally)
        result[:, column] = rule(placement, supplies[:, column])
    return result
