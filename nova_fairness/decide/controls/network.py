# SPDX-License-Identifier: Apache-2.0

"""Network: who fills a busy link, and weights to guaranteed rates and back.

A class of the kernel's hierarchical token bucket has a rate that it gets in
any case, and what others leave is divided in proportion to the rates. So the
rates of all VMs together are the whole link, divided by weight: the kernel
holds one number per VM, bytes per second, the same in each direction.
"""

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import contention
from nova_fairness.decide.controls import scale
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping

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
leaves more of it unused is not held back by others: its class has the rate in
any case."""

UNRATED = 0.05
"""Part of the capacity from which a VM without a class of its own wants more:
it has no rate to be filled."""


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


def weights_of(held: Rates) -> npt.NDArray[np.float64]:
    """Weights that stand for rates, up to a common factor.

    :param held: what the kernel holds.
    :returns: (n,) mean 1 over the VMs that have a class, 1 for the others.
    """
    weights = np.ones(len(held))
    known = held > 0
    if known.any():
        weights[known] = held[known] / held[known].mean()
    return weights


def judge(
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
    rated = np.where(held > 0, FILLED * held * interval_s, UNRATED * whole)
    contended, wanting = _filled(
        np.zeros(len(carried), dtype=np.intp),
        carried,
        rated[:, np.newaxis],
        np.full((1, carried.shape[1]), whole),
    )
    return bool(contended[0]), wanting


def judged(
    load: contention.ContentionLoad, weights: usage_model.Scalars
) -> contention.Judged:
    """Judge the links of many nodes, on which each VM has a class.

    :param weights: (n,) in force.
    """
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.NETWORK)
    whole = load.supply[:, steered]
    sums = np.bincount(load.node, weights, len(load.supply))
    part = (weights / sums[load.node])[:, np.newaxis]
    rated = FILLED * part * whole[load.node]
    return _filled(load.node, load.used[:, steered], rated, whole)


def _filled(
    node: usage_model.Indices, carried: Bytes, rated: Bytes, whole: Bytes
) -> contention.Judged:
    """Judge links by what VMs carried, and from which amount they want more.

    :param rated: (n, d) or (n, 1).
    :param whole: (m, d) what each direction could carry.
    """
    nodes = len(whole)
    total = grouping.sum_by(node, carried, nodes)
    busy = ((total >= BUSY * whole) & (whole > 0))[node]
    wanting = (carried >= rated) & busy
    contended = np.zeros(nodes, dtype=np.bool_)
    # Who sends is not in the way of who receives.
    for wants, used in zip(wanting.T, carried.T, strict=True):
        contended |= contention.have_rivals(node, nodes, wants, used)
    return contended, np.asarray(wanting.any(axis=1))


def moved(amounts: resources.Vector) -> Bytes:
    """Traffic of VMs, one column per direction.

    :param amounts: (n, r) of a usage.
    """
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.NETWORK)
    return np.asarray(amounts[:, steered])


class NetworkScale(scale.Scale):
    """Rates of classes: the link divided by weight.

    :param capacity: gives bytes per second of one direction that all VMs
        share, now.
    """

    control = resources.ResourceControl.NETWORK

    def __init__(self, capacity: Callable[[], float]) -> None:
        self._capacity = capacity

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Say who fills a busy link."""
        held = np.array(
            [units or 0 for units in facts.units(self.control)],
            dtype=np.int64,
        )
        return judge(
            moved(facts.usage.amounts),
            held,
            self._capacity(),
            facts.usage.interval_s,
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Divide the link; VMs that are left alone get a neutral part."""
        known = sum(units is not None for units in facts.units(self.control))
        found: list[int] = rates(
            weights[list(rows)],
            known - len(rows),
            self._capacity(),
            facts.tolerance(self.control),
        ).tolist()
        return found

    def weight(
        self,
        held: int,
        row: int,
        last: scale.LastDecision | None,
        facts: scale.ScaleFacts,
    ) -> float:
        """The last weight as far as the kernel took it over."""
        if last is not None and last.units:
            return max(last.weight * held / last.units, 1e-9)
        if not held:
            return 1.0
        units = np.array(
            [found or 0 for found in facts.units(self.control)], dtype=np.int64
        )
        return float(weights_of(units)[row])
