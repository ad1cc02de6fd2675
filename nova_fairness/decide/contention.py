# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Who waits for what on a node.

A weight divides only what somebody waits for, and it works only for a VM
that wants more. All arithmetic takes many nodes at once: an agent has one, a
simulator thousands.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import policy
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

STALL_THRESHOLD = 0.1
"""Part of an interval from which a waiting VM counts as wanting more.

A lone busy VM waits 1-3 % for its own emulator thread and for the host, an
idle one up to 8 % where the host is busy, a VM with a third of a saturated
CPU 67 %, one that leaves 10 % to others 10 %.
"""

RUNNABLE = 0.7
"""Part of an interval for which a VM ran or waited for a CPU, from which it
may want more. One with idle time left does all that it has to do, only later
where the host makes it wait; no weight would change what it uses.
"""

RIVAL = 0.05
"""Part of a node's capacity from which a VM that does not wait is a rival of
those that do: below it, there is nothing to be had from it."""

BUSY_WITH_STALL = 0.85
"""Part of a node's capacity from which stalls mean contention.

Below that the VMs wait for something else than each other: a quota, or a
few CPUs to which they are pinned. What the host itself does counts, because
VMs that compete with it for the rest compete with each other.
"""

BUSY_WITHOUT_STALL = 0.9
"""The same where the kernel tells no stalls and utilisation is the only
sign; higher, because a node can be that busy while nobody waits."""

SATISFIED = 0.95
"""Part of what its vCPUs could use from which a VM cannot want more."""

IDLE = 0.01
"""Part of what its vCPUs could use below which a VM wants nothing."""


JUDGED: tuple[resources.Control, ...] = (resources.Control.CPU,)
"""Controls of which an agent knows enough to judge; no other is contended."""


@dataclasses.dataclass(frozen=True, eq=False)
class Load:
    """What the VMs of one or more nodes used, and for what they waited.

    :ivar node: (n,) index of each VM's node.
    :ivar vcpus: (n,) >= 1.
    :ivar used: (n, r) finite, >= 0, amounts of the interval.
    :ivar stall: (n, c) part of the interval, 0..1, in which the VM waited for
        what the control steers; NaN where nobody tells.
    :ivar ready: (n,) whether the VM runs and its usage is known.
    :ivar cpus: (m,) number of each node's CPUs, > 0.
    :ivar supply: (m, r) >= 0, of each node in the interval.
    :ivar interval_s: length of the interval, seconds, > 0.
    :ivar busy: (m, c) part of the capacity, 0..1, that anybody used, the host
        included; NaN where only the VMs' own use is known.
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


def judged(
    load: Load, controls: tuple[resources.Control, ...] = JUDGED
) -> tuple[resources.Mask, resources.Mask]:
    """Judge who wants more on each node.

    :param controls: that are judged; of the others nobody wants more.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    nodes, count = len(load.supply), len(load.node)
    contended = np.zeros((nodes, len(resources.CONTROLS)), dtype=np.bool_)
    wanting = np.zeros((count, len(resources.CONTROLS)), dtype=np.bool_)
    for control in controls:
        column = resources.CONTROLS.index(control)
        part = _parts(load, control)
        stall = load.stall[:, column]
        wants = _wanting(load, control, part.max(axis=1, initial=0.0), stall)
        wanting[:, column] = wants
        contended[:, column] = _contended(
            load, part, wants, np.isfinite(stall), load.busy[:, column]
        )
    return contended, wanting


def situation(
    usage: usage_model.Usage,
    heaviness: usage_model.Scalars,
    user: usage_model.Indices,
    node: node_model.NodeResources,
) -> policy.Situation:
    """Judge who wants more on one node.

    :param usage: of the VMs of that node in the last interval.
    :param heaviness: (n,) finite, norm units, rows of ``usage``.
    :param user: (n,) index of each VM's user.
    :param node: what the node has.
    :returns: rows as in ``usage``.
    """
    load = _load(usage, node)
    contended, wanting = judged(load)
    return policy.Situation(
        keys=tuple(item.key for item in usage.incarnations),
        heaviness=np.array(heaviness, dtype=np.float64),
        user=np.array(user, dtype=np.intp),
        vcpus=load.vcpus,
        contended=contended[0],
        wanting=wanting,
    )


def _load(usage: usage_model.Usage, node: node_model.NodeResources) -> Load:
    cpu = resources.CONTROLS.index(resources.Control.CPU)
    vms = usage.incarnations
    stall = np.full((len(vms), len(resources.CONTROLS)), np.nan)
    stall[:, cpu] = usage.cpu_stall
    busy = np.full((1, len(resources.CONTROLS)), np.nan)
    busy[0, cpu] = _told_busy(usage, node)
    running = np.array([not item.paused for item in vms], dtype=np.bool_)
    return Load(
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


def _told_busy(
    usage: usage_model.Usage, node: node_model.NodeResources
) -> float:
    """Give the busy part of the node's CPUs; NaN if one does not tell."""
    cpus = [number for number in node.cpus if number < len(usage.cpu_busy)]
    if len(cpus) < len(node.cpus):
        return float('nan')
    return float(usage.cpu_busy[cpus].mean())


def _parts(load: Load, control: resources.Control) -> resources.Vector:
    """Give the part of its node's supply that each VM used.

    :returns: (n, k), a column for each resource that the control steers.
    """
    steered = resources.RESOURCES.steered_by(control)
    supply = load.supply[:, steered]
    safe = np.where(supply > 0, supply, np.inf)
    return np.asarray(load.used[:, steered] / safe[load.node])


def _wanting(
    load: Load,
    control: resources.Control,
    part: usage_model.Scalars,
    stall: usage_model.Scalars,
) -> resources.Mask:
    told = np.isfinite(stall)
    waits = np.where(told, stall, 0.0) > STALL_THRESHOLD
    usable = np.ones(len(part))
    if control is resources.Control.CPU:
        cpus = load.cpus[load.node]
        usable = np.minimum(load.vcpus, cpus) / cpus
        waits &= part * cpus + np.where(told, stall, 0.0) >= RUNNABLE
    by_use = (part > IDLE * usable) & (part < SATISFIED * usable)
    return np.asarray(np.where(told, waits, by_use) & load.ready)


def _contended(
    load: Load,
    part: resources.Vector,
    wanting: resources.Mask,
    told: resources.Mask,
    busy: usage_model.Scalars,
) -> resources.Mask:
    """Tell where somebody waits, and somebody else has what he wants."""

    def counted(chosen: resources.Mask) -> usage_model.Indices:
        return np.bincount(load.node[chosen], minlength=len(load.supply))

    having = (part > RIVAL).any(axis=1)
    compete = (counted(wanting) > 0) & (counted(wanting | having) > 1)
    columns = [
        np.bincount(load.node, column, len(load.supply)) for column in part.T
    ]
    used = np.max(columns, axis=0, initial=0.0)
    enough = np.where(
        counted(wanting & told) > 0, BUSY_WITH_STALL, BUSY_WITHOUT_STALL
    )
    return compete & (np.where(np.isfinite(busy), busy, used) >= enough)
