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

"""What VMs would use if there were plenty.

A VM that waits for a part *s* of the time runs for the rest of it: with
plenty it would use ``used / (1 - s)``, and at most what its vCPUs can. One
that does not wait wants what it uses. The newest interval counts: what a VM
wants needs no smoothing, since it does not follow from its weight.

Where a kernel does not tell who waits for a CPU, a VM of a full node that
uses neither nothing nor nearly all of its vCPUs is taken to want all of them.

Only waiting for the CPU is told VM by VM, so that of all else VMs are taken
to want what they use. To tell too much does no harm, because nobody is given
more than he uses; to tell too little keeps him from what he lacks.
"""

import numpy as np
import numpy.typing as npt

from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

RUNNABLE = 0.7
"""Part of an interval for which a VM ran or waited for a CPU, from which it
may want more. One with idle time left does all that it has to do, only later
where others make it wait. Contention is judged by the same number."""

FULL = 0.9
"""Part of a node's CPUs in use from which VMs may lack something, where the
kernel does not tell who waits ..."""

IDLE, SATISFIED = 0.01, 0.95
"""... and parts of what its vCPUs can use between which a VM may want more.
Contention is judged by these numbers, too."""

ALL = 0.999
"""Who waits for more of the time than that may want anything."""


def wanted(
    usage: usage_model.Usage, node: node_model.NodeResources
) -> resources.Vector:
    """Judge what each VM of a node wants.

    :returns: (n, r) amounts of the interval, finite, at least the newest
        usage.
    """
    cpu = resources.RESOURCES.index('cpu_time')
    vcpus = np.array([item.instance.vcpus for item in usage.incarnations])
    cpus = np.minimum(vcpus, len(node.cpus))
    one_cpu = node.speed_factor * usage.interval_s
    result = usage.newest.copy()
    used = result[:, cpu]
    told = of_cpu(used, usage.cpu_stall, cpus, one_cpu)
    full = used.sum() >= FULL * len(node.cpus) * one_cpu
    blind = np.isnan(usage.cpu_stall) & full
    result[:, cpu] = np.where(blind, guessed(used, cpus * one_cpu), told)
    return result


def guessed(
    used: usage_model.Scalars, most: usage_model.Scalars
) -> usage_model.Scalars:
    """Judge what VMs of a full node want without knowing who waited.

    :param used: (n,) of the CPU in the newest interval, >= 0.
    :param most: (n,) that each could use.
    :returns: (n,) at least ``used``.
    """
    may = (used > IDLE * most) & (used < SATISFIED * most)
    return np.where(may, most, used)


def lasting(
    wanted: resources.Vector, used: resources.Vector, before: resources.Vector
) -> resources.Vector:
    """Leave out what was wanted in one interval only.

    Whatever makes a host busy for a moment makes its VMs wait, and what they
    would use of a plenty cannot be told from that alone.

    :param wanted: (n, r) in the newest interval.
    :param used: (n, r) in the newest interval, at most ``wanted``.
    :param before: (n, r) wanted in the interval before, amounts of the newest;
        NaN for VMs that were not there.
    :returns: (n, r) at least ``used``.
    """
    return np.maximum(used, np.fmin(wanted, before))


def of_cpu(
    used: usage_model.Scalars,
    stall: usage_model.Scalars,
    cpus: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    one_cpu: usage_model.Scalars | float,
) -> usage_model.Scalars:
    """Judge what VMs want of the CPU from how long they waited.

    :param used: (n,) in the newest interval, >= 0.
    :param stall: (n,) part of the interval, 0..1, in which each waited; NaN
        where the kernel does not tell.
    :param cpus: (n,) that each could use.
    :param one_cpu: what one CPU does in the interval, > 0; of all or (n,).
    :returns: (n,) at least ``used``.
    """
    waited, most = np.nan_to_num(stall), cpus * one_cpu
    waited = np.where(used / one_cpu + waited >= RUNNABLE, waited, 0.0)
    left = np.where(waited < ALL, 1.0 - waited, 1.0)
    wanting = np.where(waited < ALL, used / left, most)
    return np.maximum(used, np.minimum(wanting, most))
