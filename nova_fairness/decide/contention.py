# SPDX-License-Identifier: Apache-2.0

"""Contention on a node: the VMs that wait, and for what.

A weight divides a resource only among VMs that wait for it, and it works only
for a VM that wants more. All arithmetic takes many nodes at once: an agent has
one, a simulator thousands.
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
"""Part of what the only VM that wants more uses. Other VMs that together use
less are no rivals: it can gain nothing from them. The case is one VM of 8
vCPUs against 40 that want 0.3 CPUs each."""

Judged = tuple[resources.Mask, resources.Mask]
"""(m,) whether a node's VMs compete, (n,) whether each VM wants more."""

JUDGED: tuple[resources.ResourceControl, ...] = (
    resources.ResourceControl.CPU,
)
"""Controls that an agent knows enough of to judge; no other is contended."""


@dataclasses.dataclass(frozen=True, eq=False)
class ContentionLoad:
    """Use and stalls of the VMs of one or more nodes.

    :ivar node: (n,) index of each VM's node.
    :ivar vcpus: (n,) >= 1.
    :ivar used: (n, r) finite, >= 0, amounts of the interval.
    :ivar stall: (n, c) part of the interval, 0..1, in which the VM waited for
        the resource of the control; NaN where that is not known.
    :ivar ready: (n,) whether the VM runs and its usage is known.
    :ivar cpus: (m,) number of each node's CPUs, > 0.
    :ivar supply: (m, r) >= 0, of each node in the interval.
    :ivar interval_s: length of the interval, seconds, > 0.
    :ivar busy: (m, c) part of the capacity, 0..1, in use, the host included;
        NaN where only the VMs' own use is known.
    :ivar waiting: who waits for a CPU; ``None`` if that is not judged over
        intervals: then this one alone counts.
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


def judged(
    load: ContentionLoad,
    controls: tuple[resources.ResourceControl, ...] = JUDGED,
) -> tuple[resources.Mask, resources.Mask]:
    """Judge which VMs want more on each node.

    :param controls: that are judged; of the others no VM wants more.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    nodes, count = len(load.supply), len(load.node)
    contended = np.zeros((nodes, len(resources.CONTROLS)), dtype=np.bool_)
    wanting = np.zeros((count, len(resources.CONTROLS)), dtype=np.bool_)
    if resources.ResourceControl.CPU in controls:
        column = resources.CONTROLS.index(resources.ResourceControl.CPU)
        found = _alone(load) if load.waiting is None else load.waiting
        wanting[:, column] = found.vms & load.ready
        used = _parts(load).sum(axis=1) * load.cpus[load.node]
        rivals = have_rivals(load.node, nodes, wanting[:, column], used)
        contended[:, column] = rivals & found.nodes
    return contended, wanting


def situation(
    usage: usage_model.Usage,
    heaviness: usage_model.Scalars,
    user: usage_model.Indices,
    node: node_model.NodeResources,
    waiting: usage_model.CpuWaits | None = None,
) -> policy.Situation:
    """Judge who wants more on one node.

    :param usage: of the VMs of that node in the last interval.
    :param heaviness: (n,) finite, norm units, rows of ``usage``.
    :param user: (n,) index of each VM's user.
    :param node: what the node has.
    :param waiting: as was judged over intervals; ``None``: this one counts.
    :returns: rows as in ``usage``.
    """
    load = dataclasses.replace(_load(usage, node), waiting=waiting)
    contended, wanting = judged(load)
    return policy.Situation(
        keys=tuple(item.key for item in usage.incarnations),
        heaviness=np.array(heaviness, dtype=np.float64),
        user=np.array(user, dtype=np.intp),
        vcpus=load.vcpus,
        contended=contended[0],
        wanting=wanting,
    )


def _load(
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


def _alone(load: ContentionLoad) -> usage_model.CpuWaits:
    """Judge by one interval, without any before."""
    column = resources.CONTROLS.index(resources.ResourceControl.CPU)
    cpus = load.cpus[load.node]
    now = waiting_module.Interval(
        node=load.node,
        used=_parts(load).max(axis=1, initial=0.0) * cpus,
        stall=load.stall[:, column],
        most=np.minimum(load.vcpus, cpus),
        ready=load.ready,
        cpus=load.cpus,
        busy=load.busy[:, column],
    )
    past = waiting_module.WaitHistory.unknown(len(load.node))
    return waiting_module.judge(now, past)[0]


def _parts(load: ContentionLoad) -> resources.Vector:
    """The part of its node's CPUs that each VM used, (n, 1)."""
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.CPU)
    supply = load.supply[:, steered]
    safe = np.where(supply > 0, supply, np.inf)
    return np.asarray(load.used[:, steered] / safe[load.node])


def have_rivals(
    node: usage_model.Indices,
    nodes: int,
    wanting: resources.Mask,
    used: usage_model.Scalars,
) -> resources.Mask:
    """Tell where some want more, or one does and the others have some, (m,).

    How much each of the others has does not count: many small VMs together
    have as much as a large one.

    :param node: (n,) index of each VM's node.
    :param used: (n,) of what is wanted, >= 0.
    """
    count = np.bincount(node[wanting], minlength=nodes)
    own = np.bincount(node, np.where(wanting, used, 0.0), nodes)
    others = np.bincount(node, used, nodes) - own
    alone = (count == 1) & (others > RIVAL * own)
    return np.asarray((count > 1) | alone)


def compete(
    node: usage_model.Indices,
    nodes: int,
    wanting: resources.Mask,
    having: resources.Mask,
) -> resources.Mask:
    """Tell where one VM waits, and another has something, (m,).

    :param node: (n,) index of each VM's node.
    """

    def counted(chosen: resources.Mask) -> usage_model.Indices:
        return np.bincount(node[chosen], minlength=nodes)

    return (counted(wanting) > 0) & (counted(wanting | having) > 1)
