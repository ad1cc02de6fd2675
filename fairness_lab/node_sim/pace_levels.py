# SPDX-License-Identifier: Apache-2.0


"""Raise all VMs of a node to one level of greediness.

The allocators of earlier work on the framework (Poullie et al.) give every VM
of a node an amount that makes it as greedy as the others, and stop raising
those that use a resource without a rest. Many nodes at once.
"""

import dataclasses
from typing import Protocol

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Indices = usage_model.Indices

DISCOUNT = 1.0
"""Greediness of a unit below the endowment (gamma for dcf = 0) ..."""

PENALTY = 2.0
"""... and of one beyond it (beta for dcf = 0)."""

_HALVINGS = 60
_SATURATED = 1e-7


@dataclasses.dataclass(frozen=True, eq=False)
class Consumers:
    """The VMs that are levelled: rows are VMs, k resources count.

    :ivar node: (n,) index of each VM's node.
    :ivar demand: (n, k) >= 0.
    :ivar endowment: (n, k) >= 0.
    :ivar capacity: (m, k) >= 0.
    :ivar initial_greediness: (n,) greediness before anything is divided.
    """

    node: Indices
    demand: resources.Vector
    endowment: resources.Vector
    capacity: resources.Vector
    initial_greediness: Scalars

    def norm(self) -> resources.Vector:
        """Factors that make resources comparable, (n, k)."""
        safe = np.where(self.capacity > 0, self.capacity, np.inf)
        return np.asarray((1.0 / safe)[self.node])


class Greediness(Protocol):
    """Greediness of VMs by their pace; rises, and is piecewise linear."""

    def __call__(self, consumers: Consumers, pace: Scalars) -> Scalars:
        """Greediness, (n,), at paces (n,) in 0..1."""


def greediness(consumers: Consumers, pace: Scalars) -> Scalars:
    """Greediness: use beyond the endowment minus credit for less use."""
    used = pace[:, np.newaxis] * consumers.demand
    excess = used - consumers.endowment
    slope = np.where(excess > 0, PENALTY, DISCOUNT)
    return np.asarray((slope * excess * consumers.norm()).sum(axis=1))


def total_use(consumers: Consumers, pace: Scalars) -> Scalars:
    """Sum of the fractions of all resources that each VM uses, (n,)."""
    used = pace[:, np.newaxis] * consumers.demand
    return np.asarray((used * consumers.norm()).sum(axis=1))


def dominant_use(consumers: Consumers, pace: Scalars) -> Scalars:
    """Largest fraction of a resource that each VM uses, (n,)."""
    used = pace[:, np.newaxis] * consumers.demand
    return np.asarray((used * consumers.norm()).max(axis=1, initial=0.0))


def paces_at_equal_level(
    consumers: Consumers, value: Greediness = greediness
) -> Scalars:
    """Pace of each VM, 0..1: the fraction of its demand that it gets.

    All rise together. When a resource of a node is given away, its VMs that
    want any of it stay where they are and the others go on.

    :returns: (n,); for no resource more than the capacity is given.
    """
    pace = np.zeros(len(consumers.node))
    rising = np.asarray((consumers.demand > 0).any(axis=1))
    pace[~rising] = 1.0
    for _ in range(consumers.demand.shape[1]):
        if not rising.any():
            break
        pace = _raise_until_blocked(consumers, value, pace, rising)
        stuck = _is_blocked(consumers, pace)
        rising = np.asarray(rising & (pace < 1.0) & ~stuck)
    return pace


def _raise_until_blocked(
    consumers: Consumers,
    value: Greediness,
    pace: Scalars,
    rising: resources.Mask,
) -> Scalars:
    """Raise paces until the first resource of each node is used up."""
    nodes = len(consumers.capacity)
    ends = [
        consumers.initial_greediness
        + value(consumers, np.full(len(pace), end))
        for end in (0.0, 1.0)
    ]
    low, high = np.full(nodes, np.inf), np.full(nodes, -np.inf)
    np.minimum.at(low, consumers.node[rising], ends[0][rising])
    np.maximum.at(high, consumers.node[rising], ends[1][rising])
    low = np.where(np.isfinite(low), low, 0.0)
    high = np.where(np.isfinite(high), high, 0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = _fits(
            consumers, _pace_at_level(consumers, value, pace, rising, middle)
        )
        low = np.where(fits, middle, low)
        high = np.where(fits, high, middle)
    top = _pace_at_level(consumers, value, pace, rising, high)
    whole = _fits(consumers, top)[consumers.node]
    return np.where(
        whole, top, _pace_at_level(consumers, value, pace, rising, low)
    )


def _pace_at_level(
    consumers: Consumers,
    value: Greediness,
    pace: Scalars,
    rising: resources.Mask,
    levels: Scalars,
) -> Scalars:
    """Pace at which each rising VM is as greedy as its node's level.

    The value is made of straight pieces that end where a resource passes its
    endowment: between two ends it is inverted exactly.
    """
    goal = levels[consumers.node] - consumers.initial_greediness
    wanted = np.where(consumers.demand > 0, consumers.demand, np.inf)
    knots = np.sort(np.clip(consumers.endowment / wanted, 0.0, 1.0), axis=1)
    edge = np.zeros((len(pace), 1))
    knots = np.concatenate([edge, knots, edge + 1.0], axis=1)
    heights = np.stack(
        [value(consumers, column) for column in knots.T], axis=1
    )
    piece = (heights[:, 1:-1] <= goal[:, np.newaxis]).sum(axis=1)
    rows = np.arange(len(pace))
    begin, end = heights[rows, piece], heights[rows, piece + 1]
    first, last = knots[rows, piece], knots[rows, piece + 1]
    part = np.divide(
        goal - begin, end - begin, out=np.ones(len(pace)), where=end > begin
    )
    found = first + np.clip(part, 0.0, 1.0) * (last - first)
    return np.where(rising, np.maximum(found, pace), pace)


def _node_use(consumers: Consumers, pace: Scalars) -> resources.Vector:
    amounts = pace[:, np.newaxis] * consumers.demand
    nodes = len(consumers.capacity)
    return np.stack(
        [np.bincount(consumers.node, column, nodes) for column in amounts.T],
        axis=1,
    )


def _fits(consumers: Consumers, pace: Scalars) -> resources.Mask:
    slack = 1 + 1e-12
    fits = _node_use(consumers, pace) <= consumers.capacity * slack
    return np.asarray(fits.all(axis=1))


def _is_blocked(consumers: Consumers, pace: Scalars) -> resources.Mask:
    """Whether each VM wants a resource that is used up, (n,)."""
    left = consumers.capacity - _node_use(consumers, pace)
    given = left <= _SATURATED * consumers.capacity
    return np.asarray(
        (given[consumers.node] & (consumers.demand > 0)).any(axis=1)
    )
