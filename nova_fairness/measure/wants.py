# SPDX-License-Identifier: Apache-2.0

"""Wants of VMs: their use if there were plenty.

Where a node is short of CPUs, a VM that waits for a part *s* of the time runs
and thinks in the rest of it: with plenty it would use ``used / (1 - s)``, and
at most the time of its vCPUs. Everywhere else its want is its use. The newest
interval counts: wants need no smoothing, since they do not follow from
weights.

Where a kernel does not report which VMs wait for a CPU, a VM of a full node
that uses neither nothing nor nearly all of its vCPUs is taken to want all of
them.

Only waiting for the CPU is known VM by VM, so that for all other resources
the want is taken to be the use. Too large a want does no harm, because no VM
is given more than it uses; too small a want keeps a VM from amounts that it
lacks.
"""

import numpy as np

from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting


def interval(
    usage: usage_model.Usage, node: node_model.NodeResources
) -> waiting.Interval:
    """Tell what the VMs of a node did with its CPUs."""
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


def wanted(
    now: waiting.Interval,
    lacking: usage_model.Scalars,
    used: resources.Vector,
    one_cpu: usage_model.Scalars | float,
) -> resources.Vector:
    """Judge what each VM would want if its node were short of CPUs.

    :param now: what the VMs did.
    :param lacking: (n,) of :class:`.usage.Waiting`.
    :param used: (n, r) amounts of the newest interval.
    :param one_cpu: what one CPU does in the interval, > 0; of all or (n,).
    :returns: (n, r) amounts of the interval, finite, at least ``used``.
    """
    cpu = resources.RESOURCES.index('cpu_time')
    most = now.most * one_cpu
    told = np.isfinite(lacking)
    stall = np.where(told, lacking, 0.0)
    result = used.copy()
    result[:, cpu] = np.where(
        ~told & waiting.guessed(now.used, now.most),
        np.maximum(used[:, cpu], most),
        waiting.closed(used[:, cpu], stall, most),
    )
    return result


def of_begun(
    wanted: resources.Vector, began: resources.Mask, most: usage_model.Scalars
) -> resources.Vector:
    """Take VMs that began to run within the interval to want all CPU time.

    Their use of a part of it does not show their wants, and too large a want
    does no harm.

    :param wanted: (n, r) amounts of the interval.
    :param began: (n,) whether a VM was paused when the interval began.
    :param most: (n,) CPU time that each could use in the interval.
    """
    cpu = resources.RESOURCES.index('cpu_time')
    result = wanted.copy()
    result[began, cpu] = np.maximum(wanted[began, cpu], most[began])
    return result


def lasting(
    wanted: resources.Vector, used: resources.Vector, before: resources.Vector
) -> resources.Vector:
    """Leave out wants of one interval only.

    Anything that makes a host busy for a moment makes its VMs wait, and their
    use of a plenty cannot be told from that alone. A VM that rested for a
    moment keeps the want that it had before.

    :param wanted: (n, r) in the newest interval.
    :param used: (n, r) in the newest interval, at most ``wanted``.
    :param before: (n, r) the most wanted in either of the two intervals
        before, amounts of the newest; NaN for VMs that were not there.
    :returns: (n, r) at least ``used``.
    """
    return np.maximum(used, np.fmin(wanted, before))
