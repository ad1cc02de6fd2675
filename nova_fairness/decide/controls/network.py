# SPDX-License-Identifier: Apache-2.0

"""Weights of the network to guaranteed rates and back: pure.

A class of the kernel's hierarchical token bucket has a rate that it gets in
any case, and what others leave is divided in proportion to the rates. So the
rates of all VMs together are the whole link, divided by weight: the kernel
holds one number per VM, bytes per second, the same in each direction.
"""

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources

Rates = npt.NDArray[np.int64]
"""(n,) bytes per second that a VM gets in any case; 0 if it has no class."""

Bytes = npt.NDArray[np.float64]
"""(n, d) amounts of an interval; one column per direction of the link."""

SMALLEST = 1000
"""Least rate of a class, bytes per second: below, the kernel's arithmetic of
bursts runs over."""

LARGEST = 10**12
"""Greatest rate of a class, bytes per second."""

BUSY = 0.85
"""Part of the link's capacity in a direction from which its users compete."""

FILLED = 0.85
"""Part of its own rate from which a VM on a busy link wants more. One that
leaves more of it unused is held back by nobody: its class has the rate in any
case."""

RIVAL = 0.05
"""Part of the capacity from which a VM is a rival of those that want more;
the same without a class of its own, where there is no rate to be filled."""


def rates(
    weights: npt.NDArray[np.float64],
    unsteered: int,
    capacity: float,
    tolerance: float,
) -> Rates:
    """Divide a link by weight.

    :param weights: (n,) finite, > 0, of the VMs that have a class.
    :param unsteered: how many VMs share the class of what has none; each
        counts as one of neutral weight, >= 0.
    :param capacity: bytes per second of one direction that all VMs share.
    :param tolerance: part of a rate, 0 to below 1, by which the kernel's may
        differ because smaller changes are not written. So much is kept back,
        so that the sum of what the kernel holds never exceeds the capacity.
    :returns: (n,) :data:`SMALLEST` to :data:`LARGEST`. Their sum is at most
        ``(1 - tolerance) * capacity`` unless the smallest rates exceed it.
    """
    total = float(weights.sum()) + unsteered
    if total <= 0:
        return np.zeros(0, dtype=np.int64)
    usable = capacity * (1.0 - tolerance)
    wanted = np.floor(usable * weights / total)
    bounded: Rates = np.clip(wanted, SMALLEST, LARGEST).astype(np.int64)
    return bounded


def weights_from(held: Rates) -> npt.NDArray[np.float64]:
    """Give weights that stand for rates, up to a common factor.

    :param held: what the kernel holds.
    :returns: (n,) mean 1 over the VMs that have a class, 1 for the others.
    """
    weights = np.ones(len(held))
    known = held > 0
    if known.any():
        weights[known] = held[known] / held[known].mean()
    return weights


def situation(
    carried: Bytes, held: Rates, capacity: float, interval_s: float
) -> tuple[bool, npt.NDArray[np.bool_]]:
    """Judge who wants more of a link.

    :param carried: (n, d) bytes of the interval, see :func:`moved`.
    :param held: (n,) what the kernel holds.
    :param capacity: bytes per second of one direction that all VMs share.
    :param interval_s: seconds, > 0.
    :returns: whether VMs compete, and (n,) whether each wants more.
    """
    whole = capacity * interval_s
    busy = carried.sum(axis=0) >= BUSY * whole
    rated = np.where(held > 0, FILLED * held * interval_s, RIVAL * whole)
    wanting = (carried >= rated[:, np.newaxis]) & busy
    having = (carried > RIVAL * whole) & busy
    # Who sends is not in the way of who receives.
    rivals = (wanting | having).sum(axis=0)
    contended = bool((wanting.any(axis=0) & (rivals > 1)).any())
    return contended, np.asarray(wanting.any(axis=1))


def moved(amounts: resources.Vector) -> Bytes:
    """Give what VMs moved, one column per direction.

    :param amounts: (n, r) of a usage.
    """
    steered = resources.RESOURCES.steered_by(resources.Control.NETWORK)
    return np.asarray(amounts[:, steered])
