# SPDX-License-Identifier: Apache-2.0

"""Network: VMs that fill a busy link, and guaranteed rates for weights.

A class of the kernel's hierarchical token bucket has a guaranteed rate, and
unused bandwidth is divided in proportion to the rates. So the whole link is
divided by weights, and the kernel gets one rate per VM, bytes per second, the
same in both directions.
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
"""(n,) guaranteed bytes per second of each VM; 0 if it has no class."""

Bytes = npt.NDArray[np.float64]
"""(n, d) bytes in an interval; one column per direction of the link."""

SMALLEST = 1000
"""Least rate of a class, bytes per second: with less, the kernel's arithmetic
of bursts overflows."""

LARGEST = 10**12
"""Greatest rate of a class, bytes per second."""

BUSY = 0.85
"""Used part of the link's capacity in a direction from which VMs compete."""

FILLED = 0.85
"""Used part of its own rate from which a VM on a busy link wants more. A VM
that uses less of its guaranteed rate is not slowed down by others."""

UNRATED = 0.05
"""Used part of the link's capacity from which a VM without a class, and so
without a guaranteed rate, wants more."""


def divide_link(
    weights: npt.NDArray[np.float64],
    unsteered: int,
    capacity: float,
    tolerance: float,
) -> Rates:
    """Divide the capacity of a link by weights.

    :param weights: (n,) weights of the VMs that have a class, finite, > 0.
    :param unsteered: number of VMs without a class, >= 0; each counts as a VM
        of neutral weight.
    :param capacity: bytes per second of one direction that all VMs share.
    :param tolerance: part of a rate, 0 to below 1, by which the kernel's rate
        may differ because smaller changes are not written. This part of the
        capacity is not divided, so that the sum of the kernel's rates never
        exceeds the capacity.
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


def weights_of_rates(held: Rates) -> npt.NDArray[np.float64]:
    """Return weights in proportion to rates.

    :param held: rates in the kernel.
    :returns: (n,) with mean 1 over the VMs that have a class; 1 for the
        others.
    """
    weights = np.ones(len(held))
    known = held > 0
    if known.any():
        weights[known] = held[known] / held[known].mean()
    return weights


def judge(
    carried: Bytes, held: Rates, capacity: float, interval_s: float
) -> tuple[bool, npt.NDArray[np.bool_]]:
    """Return whether VMs of one node compete for the link, and which ones.

    :param carried: (n, d) bytes of the interval, see :func:`link_traffic`.
    :param held: (n,) rates in the kernel.
    :param capacity: bytes per second of one direction that all VMs share.
    :param interval_s: seconds, > 0.
    :returns: whether VMs compete, and (n,) whether each wants more.
    """
    whole = capacity * interval_s
    rated = np.where(held > 0, FILLED * held * interval_s, UNRATED * whole)
    contended, wanting = _judge_links(
        np.zeros(len(carried), dtype=np.intp),
        carried,
        rated[:, np.newaxis],
        np.full((1, carried.shape[1]), whole),
    )
    return bool(contended[0]), wanting


def judge_load(
    load: contention.ContentionLoad, weights: usage_model.Scalars
) -> contention.ContentionMasks:
    """Return contention for the links of many nodes; each VM has a class.

    :param weights: (n,) weights in force.
    """
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.NETWORK)
    whole = load.supply[:, steered]
    sums = np.bincount(load.node, weights, len(load.supply))
    part = (weights / sums[load.node])[:, np.newaxis]
    rated = FILLED * part * whole[load.node]
    return _judge_links(load.node, load.used[:, steered], rated, whole)


def _judge_links(
    node: usage_model.Indices, carried: Bytes, rated: Bytes, whole: Bytes
) -> contention.ContentionMasks:
    """Return contention for links, from the traffic of VMs.

    :param carried: (n, d) bytes of each VM.
    :param rated: (n, d) or (n, 1) bytes from which each VM wants more.
    :param whole: (m, d) bytes that each direction could carry.
    """
    nodes = len(whole)
    total = grouping.sum_by(node, carried, nodes)
    busy = ((total >= BUSY * whole) & (whole > 0))[node]
    wanting = (carried >= rated) & busy
    contended = np.zeros(nodes, dtype=np.bool_)
    # Sending VMs do not compete with receiving VMs.
    for wants, used in zip(wanting.T, carried.T, strict=True):
        contended |= contention.nodes_with_rivals(node, nodes, wants, used)
    return contended, np.asarray(wanting.any(axis=1))


def link_traffic(amounts: resources.Vector) -> Bytes:
    """Return the traffic of VMs, with one column per direction.

    :param amounts: (n, r) amounts of a usage.
    """
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.NETWORK)
    return np.asarray(amounts[:, steered])


class NetworkScale(scale.Scale):
    """Kernel units of the network: rates of classes, by weights.

    :param capacity: returns the present bandwidth that all VMs share in one
        direction, bytes per second.
    """

    control = resources.ResourceControl.NETWORK

    def __init__(self, capacity: Callable[[], float]) -> None:
        self._capacity = capacity

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Return which VMs fill a busy link."""
        held = np.array(
            [units or 0 for units in facts.units(self.control)],
            dtype=np.int64,
        )
        return judge(
            link_traffic(facts.usage.amounts),
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
        """Return the rates of the VMs in ``rows``; others count as neutral."""
        known = sum(units is not None for units in facts.units(self.control))
        found: list[int] = divide_link(
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
        """Return the last weight, scaled to the rate in the kernel."""
        if last is not None and last.units:
            return max(last.weight * held / last.units, 1e-9)
        if not held:
            return 1.0
        units = np.array(
            [found or 0 for found in facts.units(self.control)], dtype=np.int64
        )
        return float(weights_of_rates(units)[row])
