# SPDX-License-Identifier: Apache-2.0

"""Contention on a node: the VMs that wait, and for what.

A weight divides a resource only among VMs that wait for it, and it works only
for a VM that wants more. All functions compute many nodes at once: an agent
has one node, a simulator has thousands.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import policy
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting as waiting_module

RIVAL = 0.05
"""Part of the use of the only VM that wants more. If all other VMs together
use less than this, the VM has no rivals, because it can gain nothing from
them. The case is one VM of 8 vCPUs against 40 that want 0.3 CPUs each."""

ContentionMasks = tuple[resources.Mask, resources.Mask]
"""(m,) whether a node's VMs compete, (n,) whether each VM wants more."""

JUDGED: tuple[resources.ResourceControl, ...] = (
    resources.ResourceControl.CPU,
)
"""Controls that are judged by default; no other control is contended."""


@dataclasses.dataclass(frozen=True, eq=False)
class ContentionLoad:
    """Use and stalls of the VMs of one or more nodes.

    :ivar node: (n,) index of each VM's node.
    :ivar vcpus: (n,) >= 1.
    :ivar used: (n, r) finite, >= 0, amounts of the interval.
    :ivar stall: (n, c) part of the interval, 0..1, in which the VM waited for
        the resource of the control; NaN if it is unknown.
    :ivar ready: (n,) whether the VM runs and its usage is known.
    :ivar cpus: (m,) number of each node's CPUs, > 0.
    :ivar supply: (m, r) >= 0, of each node in the interval.
    :ivar interval_s: length of the interval, seconds, > 0.
    :ivar busy: (m, c) part of the capacity, 0..1, that VMs and host use; NaN
        if only the use of VMs is known.
    :ivar waiting: VMs that wait for a CPU, judged over several intervals;
        ``None`` to judge by this interval alone.
    """

    node: usage_model.Indices
    vcpus: npt.NDArray[np.int64]
    used: resources.Vector
    stall: npt.NDArray[np.float64]
    ready: resources.Mask
    cpus: usage_model.Scalars
    supply: resources.Vector
    interval_s: float
    busy: npt.NDArray[np.float64]
    waiting: usage_model.CpuWaits | None = None


def judge_load(
    load: ContentionLoad,
    controls: tuple[resources.ResourceControl, ...] = JUDGED,
) -> tuple[resources.Mask, resources.Mask]:
    """Return which VMs want more, and on which nodes VMs compete.

    :param controls: controls that are judged; no VM wants more of the others.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    nodes, count = len(load.supply), len(load.node)
    contended = np.zeros((nodes, len(resources.CONTROLS)), dtype=np.bool_)
    wanting = np.zeros((count, len(resources.CONTROLS)), dtype=np.bool_)
    if resources.ResourceControl.CPU in controls:
        column = resources.CONTROLS.index(resources.ResourceControl.CPU)
        found = (
            _waits_of_interval(load) if load.waiting is None else load.waiting
        )
        wanting[:, column] = found.vms & load.ready
        used = _cpu_parts(load).sum(axis=1) * load.cpus[load.node]
        rivals = nodes_with_rivals(load.node, nodes, wanting[:, column], used)
        contended[:, column] = rivals & found.nodes
    return contended, wanting


def situation(
    usage: usage_model.Usage,
    heaviness: usage_model.Scalars,
    user: usage_model.Indices,
    node: node_model.NodeResources,
    waiting: usage_model.CpuWaits | None = None,
) -> policy.Situation:
    """Return the situation of one node, with the VMs that want more.

    :param usage: usage of the node's VMs in the last interval.
    :param heaviness: (n,) finite, norm units, rows of ``usage``.
    :param user: (n,) index of each VM's user.
    :param node: resources of the node.
    :param waiting: VMs that wait for a CPU, judged over several intervals;
        ``None`` to judge by the last interval alone.
    :returns: the situation, with the rows of ``usage``.
    """
    load = dataclasses.replace(_load_of_node(usage, node), waiting=waiting)
    contended, wanting = judge_load(load)
    return policy.Situation(
        keys=tuple(item.key for item in usage.incarnations),
        heaviness=np.array(heaviness, dtype=np.float64),
        user=np.array(user, dtype=np.intp),
        vcpus=load.vcpus,
        contended=contended[0],
        wanting=wanting,
    )


def _load_of_node(
    usage: usage_model.Usage, node: node_model.NodeResources
) -> ContentionLoad:
    cpu = resources.CONTROLS.index(resources.ResourceControl.CPU)
    vms = usage.incarnations
    stall = np.full((len(vms), len(resources.CONTROLS)), np.nan)
    stall[:, cpu] = usage.cpu_stall
    busy = np.full((1, len(resources.CONTROLS)), np.nan)
    busy[0, cpu] = usage.busy_part(node.cpus)
    running = np.array([not item.paused for item in vms], dtype=np.bool_)
    return ContentionLoad(
        node=np.zeros(len(vms), dtype=np.intp),
        vcpus=np.array([vm.instance.vcpus for vm in vms], dtype=np.int64),
        used=usage.amounts,
        stall=stall,
        ready=running & usage.known,
        cpus=np.array([len(node.cpus)], dtype=np.float64),
        supply=node.supply(usage.interval_s)[np.newaxis, :],
        interval_s=usage.interval_s,
        busy=busy,
    )


def _waits_of_interval(load: ContentionLoad) -> usage_model.CpuWaits:
    """Return the VMs that wait for a CPU, judged by this interval alone."""
    column = resources.CONTROLS.index(resources.ResourceControl.CPU)
    cpus = load.cpus[load.node]
    now = waiting_module.Interval(
        node=load.node,
        used=_cpu_parts(load).max(axis=1, initial=0.0) * cpus,
        stall=load.stall[:, column],
        most=np.minimum(load.vcpus, cpus),
        ready=load.ready,
        cpus=load.cpus,
        busy=load.busy[:, column],
    )
    past = waiting_module.WaitHistory.unknown(len(load.node))
    return waiting_module.judge_waits(now, past)[0]


def _cpu_parts(load: ContentionLoad) -> resources.Vector:
    """Return the part of its node's CPUs that each VM used, (n, 1)."""
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.CPU)
    supply = load.supply[:, steered]
    safe = np.where(supply > 0, supply, np.inf)
    return np.asarray(load.used[:, steered] / safe[load.node])


def nodes_with_rivals(
    node: usage_model.Indices,
    nodes: int,
    wanting: resources.Mask,
    used: usage_model.Scalars,
) -> resources.Mask:
    """Return the nodes with rivals for a resource, (m,).

    On such a node several VMs want more, or one VM wants more and the other
    VMs together use enough of the resource. Only their sum counts: many small
    VMs together have as much as a large one.

    :param node: (n,) index of each VM's node.
    :param wanting: (n,) whether each VM wants more.
    :param used: (n,) amount of the resource that each VM uses, >= 0.
    """
    count = np.bincount(node[wanting], minlength=nodes)
    own = np.bincount(node, np.where(wanting, used, 0.0), nodes)
    others = np.bincount(node, used, nodes) - own
    alone = (count == 1) & (others > RIVAL * own)
    return np.asarray((count > 1) | alone)


def nodes_with_competition(
    node: usage_model.Indices,
    nodes: int,
    wanting: resources.Mask,
    having: resources.Mask,
) -> resources.Mask:
    """Return the nodes on which a VM waits and another VM has something, (m,).

    :param node: (n,) index of each VM's node.
    :param wanting: (n,) whether each VM wants more.
    :param having: (n,) whether each VM has some of the resource.
    """

    def counted(chosen: resources.Mask) -> usage_model.Indices:
        return np.bincount(node[chosen], minlength=nodes)

    return (counted(wanting) > 0) & (counted(wanting | having) > 1)
