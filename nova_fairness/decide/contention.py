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
that wants more. Only CPU time is judged so far; the other controls are never
contended, so no policy moves them.
"""

import numpy as np

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
"""Part of an interval for which a VM ran or waited, from which it may want
more. One with idle time left does all that it has to do, only later where the
host makes it wait; no weight would change what it uses.
"""

RIVAL = 0.05
"""Part of the node's CPU time from which a VM that does not wait is a rival
of those that do: below it, there is nothing to be had from it."""

BUSY_WITH_STALL = 0.85
"""Part of the node's CPU time from which stalls mean contention.

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
    cpu = resources.CONTROLS.index(resources.Control.CPU)
    count = len(usage.incarnations)
    wanting = np.zeros((count, len(resources.CONTROLS)), dtype=np.bool_)
    contended = np.zeros(len(resources.CONTROLS), dtype=np.bool_)
    vcpus = np.array(
        [item.instance.vcpus for item in usage.incarnations], dtype=np.int64
    )
    wanting[:, cpu] = _cpu_wanting(usage, vcpus, node)
    contended[cpu] = _cpu_contended(usage, wanting[:, cpu], node)
    return policy.Situation(
        keys=tuple(item.key for item in usage.incarnations),
        heaviness=np.array(heaviness, dtype=np.float64),
        user=np.array(user, dtype=np.intp),
        vcpus=vcpus,
        contended=contended,
        wanting=wanting,
    )


def _cpu_wanting(
    usage: usage_model.Usage,
    vcpus: usage_model.Indices,
    node: node_model.NodeResources,
) -> resources.Mask:
    used = usage.amounts[:, resources.RESOURCES.index('cpu_time')]
    usable = np.minimum(vcpus, len(node.cpus)) * node.speed_factor
    part = used / (usable * usage.interval_s)
    by_use = (part > IDLE) & (part < SATISFIED)
    told = np.isfinite(usage.cpu_stall)
    stall = np.where(told, usage.cpu_stall, 0.0)
    cpus = used / (node.speed_factor * usage.interval_s)
    waits = (stall > STALL_THRESHOLD) & (cpus + stall >= RUNNABLE)
    running = np.array(
        [not item.paused for item in usage.incarnations], dtype=np.bool_
    )
    return np.asarray(np.where(told, waits, by_use) & running & usage.known)


def _cpu_contended(
    usage: usage_model.Usage,
    wanting: resources.Mask,
    node: node_model.NodeResources,
) -> bool:
    told = bool((wanting & np.isfinite(usage.cpu_stall)).any())
    busy = BUSY_WITH_STALL if told else BUSY_WITHOUT_STALL
    return _compete(usage, wanting, node) and _busy(usage, node) >= busy


def _compete(
    usage: usage_model.Usage,
    wanting: resources.Mask,
    node: node_model.NodeResources,
) -> bool:
    """Tell whether somebody waits, and somebody else has what he wants."""
    place = resources.RESOURCES.index('cpu_time')
    supply = float(node.supply(usage.interval_s)[place])
    having = usage.amounts[:, place] > RIVAL * supply
    return bool(wanting.any()) and int((wanting | having).sum()) > 1


def _busy(usage: usage_model.Usage, node: node_model.NodeResources) -> float:
    """Give the part of the node's CPU time that was used."""
    cpus = [number for number in node.cpus if number < len(usage.cpu_busy)]
    told = len(cpus) == len(node.cpus)
    if told and np.isfinite(usage.cpu_busy[cpus]).all():
        return float(usage.cpu_busy[cpus].mean())
    place = resources.RESOURCES.index('cpu_time')
    supply = float(node.supply(usage.interval_s)[place])
    return float(usage.amounts[:, place].sum()) / supply
