# SPDX-License-Identifier: Apache-2.0


"""Allocators of earlier work, as references for comparisons.

They divide nodes directly instead of steering weights, each node for itself:
what kernels cannot do, but what weights are meant to come near to.
"""

from collections.abc import Mapping
import types

import numpy as np

from fairness_lab.node_sim import model
from fairness_lab.node_sim import pace_levels
from nova_fairness.model import resources


class Leon:
    """All resources of a VM in proportion, greediness made equal.

    :param value: what is made equal.
    :param description: one sentence for people.
    """

    def __init__(
        self, value: pace_levels.Greediness, description: str
    ) -> None:
        self._value = value
        self.description = description

    def __call__(self, request: model.RoundDemand) -> resources.Vector:
        """Every VM gets one part of all that it wants."""
        pace = pace_levels.paces_at_equal_level(
            _levelled_consumers(request), self._value
        )
        return np.asarray(pace[:, np.newaxis] * request.demand)


class Targ:
    """Each resource for itself, greediness made equal."""

    description = (
        'Each resource for itself: equal greediness of the VMs of a node.'
    )

    def __call__(self, request: model.RoundDemand) -> resources.Vector:
        """Level one resource after the other, each from nothing."""
        result = np.empty_like(request.demand)
        for column in range(request.demand.shape[1]):
            single = _levelled_consumers(request, np.array([column]))
            result[:, column] = (
                pace_levels.paces_at_equal_level(single)
                * request.demand[:, column]
            )
        return result


class Real:
    """Memory for itself, all else in proportion."""

    description = (
        'Memory first and for itself, then all else in proportion: equal'
        ' greediness of the VMs of a node.'
    )

    def __call__(self, request: model.RoundDemand) -> resources.Vector:
        """Level memory, then the rest with what memory has made of it."""
        registry = resources.RESOURCES
        space = np.flatnonzero(~registry.time_shared)
        timed = np.flatnonzero(registry.time_shared)
        first = _levelled_consumers(request, space)
        held = pace_levels.paces_at_equal_level(first)
        had = pace_levels.greediness(first, held)
        pace = pace_levels.paces_at_equal_level(
            _levelled_consumers(request, timed, had)
        )
        result = pace[:, np.newaxis] * request.demand
        result[:, space] = held[:, np.newaxis] * request.demand[:, space]
        return np.asarray(result)


class Simp:
    """Each resource for itself, the scarcest first."""

    description = (
        'Each resource for itself, the scarcest of a node first, what was'
        ' given of it taken along: equal greediness of the VMs of a node.'
    )

    def __call__(self, request: model.RoundDemand) -> resources.Vector:
        """Level rank by rank; the order is that of each node."""
        rows = np.arange(len(request.node))
        order = _columns_scarcest_first(request)
        result = np.zeros_like(request.demand)
        had = np.zeros(len(rows))
        for rank in range(request.demand.shape[1]):
            column = order[request.node, rank]
            single = pace_levels.Consumers(
                node=request.node,
                demand=request.demand[rows, column][:, np.newaxis],
                endowment=request.endowment[rows, column][:, np.newaxis],
                capacity=np.take_along_axis(
                    request.capacity, order[:, rank : rank + 1], axis=1
                ),
                initial_greediness=had,
            )
            pace = pace_levels.paces_at_equal_level(single)
            had = had + pace_levels.greediness(single, pace)
            result[rows, column] = pace * request.demand[rows, column]
        return result


def _levelled_consumers(
    request: model.RoundDemand,
    columns: model.Indices | None = None,
    had: model.Scalars | None = None,
) -> pace_levels.Consumers:
    chosen = slice(None) if columns is None else columns
    nothing = np.zeros(len(request.node))
    return pace_levels.Consumers(
        node=request.node,
        demand=request.demand[:, chosen],
        endowment=request.endowment[:, chosen],
        capacity=request.capacity[:, chosen],
        initial_greediness=nothing if had is None else had,
    )


def _columns_scarcest_first(request: model.RoundDemand) -> model.Indices:
    """Columns of each node by demand over capacity, (m, r)."""
    nodes = len(request.capacity)
    wanted = np.stack(
        [np.bincount(request.node, c, nodes) for c in request.demand.T],
        axis=1,
    )
    safe = np.where(request.capacity > 0, request.capacity, 1.0)
    return np.argsort(-wanted / safe, axis=1, kind='stable')


ALLOCATORS: Mapping[str, model.Allocator] = types.MappingProxyType(
    {
        'LEON': Leon(
            pace_levels.greediness,
            'All resources of a VM in proportion: equal greediness of the'
            ' VMs of a node.',
        ),
        'LEON-Asset': Leon(
            pace_levels.total_use,
            'All resources of a VM in proportion: equal sums of parts of the'
            ' VMs of a node.',
        ),
        'LEON-DomRe': Leon(
            pace_levels.dominant_use,
            'All resources of a VM in proportion: equal dominant parts of'
            ' the VMs of a node.',
        ),
        'REAL': Real(),
        'SIMP': Simp(),
        'TARG': Targ(),
    }
)
"""By name."""

NONE = 'none'
EQUAL_VMS = 'equal-vms'

WITHOUT_AGENTS: Mapping[str, str] = types.MappingProxyType(
    {
        NONE: 'No agent steers: kernels divide by vCPUs.',
        EQUAL_VMS: 'No agent steers: kernels give VMs of a node the same.',
    }
)
"""References that steer nothing: description by name."""


def names() -> tuple[str, ...]:
    """Names of all references, sorted."""
    return tuple(sorted([*ALLOCATORS, *WITHOUT_AGENTS]))
