# SPDX-License-Identifier: Apache-2.0


"""Who waits for what on simulated nodes, by the rules that agents go by.

The CPU is judged by the decide room itself. For the other controls agents
judge one node by what its kernel tells of devices, faults and classes; here
are the same rules with the same numbers, for all nodes at once and for what
a simulated kernel tells.
"""

from collections.abc import Callable
from collections.abc import Mapping
import types

import numpy as np

from fairness_lab.simulator import model
from nova_fairness.decide import contention
from nova_fairness.decide.controls import disk
from nova_fairness.decide.controls import memory
from nova_fairness.decide.controls import network
from nova_fairness.model import allocation
from nova_fairness.model import resources

Mask = resources.Mask
Judgement = tuple[Mask, Mask]
"""(m,) whether a node's VMs compete, (n,) whether each VM wants more."""


def judged(
    load: contention.Load,
    controls: tuple[resources.Control, ...],
    weights: allocation.Weights,
) -> Judgement:
    """Judge who wants more on each node.

    :param controls: that are judged; of the others nobody wants more.
    :param weights: (n, c) in force.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    cpu = (resources.Control.CPU,)
    contended, wanting = contention.judged(
        load, cpu if cpu[0] in controls else ()
    )
    for control, rule in _RULES.items():
        if control in controls:
            column = resources.CONTROLS.index(control)
            contended[:, column], wanting[:, column] = rule(
                load, weights[:, column]
            )
    return contended, wanting


def _memory(load: contention.Load, _weights: model.Scalars) -> Judgement:
    """Follow :func:`.memory.judge`.

    A VM lacks memory only where its node takes some away.
    """
    column = resources.CONTROLS.index(resources.Control.MEMORY)
    stall = np.nan_to_num(load.stall[:, column])
    wanting = (stall >= memory.STALL) & load.ready
    held = load.used[:, resources.RESOURCES.index('memory')] >= 1.0
    some = _count(load, wanting) > 0
    return some & (_count(load, wanting | held) > 1), wanting


def _disk(load: contention.Load, _weights: model.Scalars) -> Judgement:
    """Follow :func:`.disk.judge`, a device for each node.

    Nobody sees who of its users waits: all of them want more.
    """
    column = resources.CONTROLS.index(resources.Control.DISK)
    steered = resources.RESOURCES.steered_by(resources.Control.DISK)
    moved = load.used[:, steered].sum(axis=1)
    total = np.bincount(load.node, moved, len(load.supply))
    active = load.ready & (moved > disk.USED * total[load.node])
    # Requests wait for each other only where somebody gets too little.
    queued = _count(load, np.nan_to_num(load.stall[:, column]) > 0) > 0
    saturated = queued & (load.busy[:, column] >= disk.BUSY)
    saturated &= _count(load, active) > 1
    return saturated, active & saturated[load.node]


def _network(load: contention.Load, weights: model.Scalars) -> Judgement:
    """Follow :func:`.network.judge`, a class for each VM."""
    steered = resources.RESOURCES.steered_by(resources.Control.NETWORK)
    nodes = len(load.supply)
    whole = load.supply[:, steered]
    carried = load.used[:, steered]
    total = np.stack(
        [np.bincount(load.node, each, nodes) for each in carried.T], axis=1
    )
    busy = ((total >= network.BUSY * whole) & (whole > 0))[load.node]
    sums = np.bincount(load.node, weights, nodes)
    part = (weights / sums[load.node])[:, np.newaxis]
    own = whole[load.node]
    wanting = (carried >= network.FILLED * part * own) & busy
    having = (carried > network.RIVAL * own) & busy
    contended = np.zeros(nodes, dtype=np.bool_)
    for direction in range(wanting.shape[1]):
        some = _count(load, wanting[:, direction]) > 0
        rivals = _count(load, (wanting | having)[:, direction])
        contended |= some & (rivals > 1)
    return contended, np.asarray(wanting.any(axis=1))


def _count(load: contention.Load, chosen: Mask) -> model.Indices:
    return np.bincount(load.node[chosen], minlength=len(load.supply))


_RULES: Mapping[
    resources.Control, Callable[[contention.Load, model.Scalars], Judgement]
] = types.MappingProxyType(
    {
        resources.Control.MEMORY: _memory,
        resources.Control.DISK: _disk,
        resources.Control.NETWORK: _network,
    }
)
