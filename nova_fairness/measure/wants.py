# SPDX-License-Identifier: Apache-2.0

"""Estimates the wants of VMs: their use without competition.

On a node that is short of CPUs, a VM that waits for a part *s* of the time
would use ``used / (1 - s)`` without competition, and at most the time of its
vCPUs. Everywhere else its want is its use. Only the newest interval counts:
wants need no smoothing, because weights do not change them. Where a kernel
does not report which VMs wait for a CPU, a VM on a full node that uses a part
of its vCPUs is assumed to want all of them. Waiting is known per VM for the
CPU only. For all other resources the want is the use. A want that is too large
does no harm, because no VM gets more than it uses. A want that is too small
withholds amounts that the VM lacks.
"""

import numpy as np

from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting


def cpu_interval(
    usage: usage_model.Usage, node: node_model.NodeResources
) -> waiting.Interval:
    """Return use and waits of a node's VMs on its CPUs in an interval."""
    count, cpus = len(usage.incarnations), len(node.cpus)
    one_cpu = node.speed_factor * usage.interval_s
    vcpus = [item.instance.vcpus for item in usage.incarnations]
    running = [not item.paused for item in usage.incarnations]
    return waiting.Interval(
        node=np.zeros(count, dtype=np.intp),
        used=usage.newest[:, resources.RESOURCES.index('cpu_time')] / one_cpu,
        stall=usage.cpu_stall,
        most=np.minimum(np.array(vcpus, dtype=np.float64), cpus),
        ready=np.array(running, dtype=np.bool_) & usage.known,
        cpus=np.array([cpus], dtype=np.float64),
        busy=np.array([usage.busy_part(node.cpus)]),
    )


def estimate_wants(
    now: waiting.Interval,
    lacking: usage_model.Scalars,
    used: resources.Vector,
    one_cpu: usage_model.Scalars | float,
) -> resources.Vector:
    """Estimate the want of each VM for the case that its node is short of
    CPUs.

    :param now: use and waits of the VMs.
    :param lacking: (n,) of :class:`.usage.Waiting`.
    :param used: (n, r) amounts of the newest interval.
    :param one_cpu: amount of one CPU in the interval, > 0; a number or (n,).
    :returns: (n, r) amounts of the interval, finite, at least ``used``.
    """
    cpu = resources.RESOURCES.index('cpu_time')
    most = now.most * one_cpu
    told = np.isfinite(lacking)
    stall = np.where(told, lacking, 0.0)
    result = used.copy()
    result[:, cpu] = np.where(
        ~told & waiting.may_want_more(now.used, now.most),
        np.maximum(used[:, cpu], most),
        waiting.use_without_waits(used[:, cpu], stall, most),
    )
    return result


def with_full_want(
    wanted: resources.Vector, began: resources.Mask, most: usage_model.Scalars
) -> resources.Vector:
    """Set the want of VMs that began to run in the interval to all CPU time.

    Their use of a part of the interval does not show their wants, and a want
    that is too large does no harm.

    :param wanted: (n, r) amounts of the interval.
    :param began: (n,) whether a VM was paused at the start of the interval.
    :param most: (n,) CPU time that each could use in the interval.
    """
    cpu = resources.RESOURCES.index('cpu_time')
    result = wanted.copy()
    result[began, cpu] = np.maximum(wanted[began, cpu], most[began])
    return result


def lasting_wants(
    wanted: resources.Vector, used: resources.Vector, before: resources.Vector
) -> resources.Vector:
    """Remove wants that occurred in one interval only.

    A short load on a host makes its VMs wait, which alone does not show their
    wants. A VM that rested for a moment keeps its earlier want.

    :param wanted: (n, r) in the newest interval.
    :param used: (n, r) in the newest interval, at most ``wanted``.
    :param before: (n, r) the larger want of the two intervals before, as
        amounts of the newest; NaN for new VMs.
    :returns: (n, r) at least ``used``.
    """
    return np.maximum(used, np.fmin(wanted, before))
