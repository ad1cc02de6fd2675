# SPDX-License-Identifier: Apache-2.0

"""Simulate kernels: turn weights into the amounts that VMs receive."""

import dataclasses

import numpy as np
import numpy.typing as npt

from fairness_lab.node_sim import model
from fairness_lab.node_sim import sharing
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import disk
from nova_fairness.model import allocation
from nova_fairness.model import resources

Units = npt.NDArray[np.float64]
"""(n, c) whole numbers of kernel units."""

RANGE = cpu.RANGES[cpu.CgroupVersion.V2]
"""Controls that the table does not name count like ``cpu.weight``, but per
VM, as the kernel's weights of I/O and of network classes do."""

_CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)

_THESIS = {
    resources.ResourceControl.CPU: cpu.THESIS,
    resources.ResourceControl.MEMORY: cpu.THESIS,
    resources.ResourceControl.DISK: disk.THESIS,
    resources.ResourceControl.NETWORK: (1, 98),
}
"""The original's ranges; that of memory stands for 10 MiB to the flavor's."""


def factors(
    weights: allocation.Weights,
    vcpus: npt.NDArray[np.int64],
    node: model.Indices,
) -> model.Scalars:
    """Factors that scale each VM's units of the CPU so that all fit, (n,).

    :param node: (n,) of each VM.
    """
    exact = (
        _unit_bases(resources.ResourceControl.CPU, vcpus) * weights[:, _CPU]
    )
    nodes = int(node.max(initial=-1)) + 1
    return cpu.scale_factors(exact, node, nodes, RANGE)[node]


def units(
    weights: allocation.Weights,
    vcpus: npt.NDArray[np.int64],
    preset: policy.Preset,
    factor: model.Scalars,
) -> Units:
    """Turn weights into kernel units: ``controls.cpu`` for many nodes.

    :param weights: (n, c) finite, > 0.
    :param vcpus: (n,) >= 1.
    :param factor: (n,) of :func:`factors`.
    """
    if preset is policy.Preset.THESIS:
        return _thesis_units(weights)
    result = neutral_units(vcpus) * weights
    result[:, _CPU] *= factor
    return np.asarray(cpu.nearest_units(result, RANGE))


def _thesis_units(weights: allocation.Weights) -> Units:
    result = np.empty(weights.shape)
    for column, control in enumerate(resources.CONTROLS):
        smallest, largest = _THESIS[control]
        scaled = np.rint(weights[:, column] * (legacy_priority.PLACES + 1)) - 1
        place = np.clip(scaled, 0, legacy_priority.PLACES)
        span = largest - smallest
        result[:, column] = place * span // legacy_priority.PLACES + smallest
    return result


def weights_of(
    held: Units, vcpus: npt.NDArray[np.int64], factor: model.Scalars
) -> allocation.Weights:
    """Turn units of the default preset into weights."""
    result = held / neutral_units(vcpus)
    result[:, _CPU] /= factor
    return np.asarray(result)


def neutral_units(vcpus: npt.NDArray[np.int64]) -> Units:
    """Units of VMs at weight 1, without the limits of the range."""
    bases = [_unit_bases(control, vcpus) for control in resources.CONTROLS]
    return np.stack(bases, axis=1)


def initial_units(vcpus: npt.NDArray[np.int64]) -> Units:
    """Units that a VM has when it starts."""
    return np.asarray(cpu.nearest_units(neutral_units(vcpus), RANGE))


def _unit_bases(
    control: resources.ResourceControl, vcpus: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    if control is resources.ResourceControl.CPU:
        return RANGE.base * vcpus.astype(np.float64)
    return np.full(len(vcpus), float(RANGE.base))


def shares_by_resource(
    held: Units, memory_bytes: model.Scalars
) -> resources.Vector:
    """Shares in proportion to which kernels divide each resource.

    :param held: (n, c).
    :param memory_bytes: (n,) of the flavor: a VM's memory is protected in
        proportion to its size.
    :returns: (n, r) > 0; 1 for a resource that nothing steers.
    """
    shares = np.ones((len(held), len(resources.RESOURCES)))
    for place, resource in enumerate(resources.RESOURCES):
        if resource.control is not None:
            column = resources.CONTROLS.index(resource.control)
            shares[:, place] = held[:, column]
        if resource.control is resources.ResourceControl.MEMORY:
            shares[:, place] *= memory_bytes
    return shares


@dataclasses.dataclass(frozen=True, eq=False)
class KernelResults:
    """Results of kernels for a time of constant demand and weights.

    :ivar received: (n, r) per second, and bytes of memory.
    :ivar stall: (n, c) part of the time, 0..1, for which each VM waited.
    :ivar busy: (m, c) part of the capacity in use, 0..1: of the resource that
        a control steers, the busiest.
    """

    received: resources.Vector
    stall: npt.NDArray[np.float64]
    busy: npt.NDArray[np.float64]


def run(
    cloud: cloud_module.Cloud,
    rows: model.Indices,
    node: model.Indices,
    demand: resources.Vector,
    shares: resources.Vector,
    protected: bool,
) -> KernelResults:
    """Divide the resources of all nodes among their VMs.

    :param rows: (p,) of the VMs that exist.
    :param node: (p,) where they are.
    :param demand: (p, r) finite.
    :param shares: (p, r) > 0.
    :param protected: whether memory is, in proportion to its shares.
    """
    divided = sharing.divide(
        cloud.capacity, node, demand, cloud.coupled[rows], shares, protected
    )
    return measure_results(
        cloud.capacity, node, divided.received, divided.wished
    )


def measure_results(
    capacity: resources.Vector,
    node: model.Indices,
    received: resources.Vector,
    wished: resources.Vector,
) -> KernelResults:
    """Compute how long VMs waited, and how busy nodes were.

    :param received: (n, r).
    :param wished: (n, r) what each would have used of a plenty.
    """
    wants = wished > 0
    missing = np.where(
        wants, 1.0 - received / np.where(wants, wished, 1.0), 0.0
    )
    used = np.stack(
        [np.bincount(node, column, len(capacity)) for column in received.T],
        axis=1,
    )
    part = used / np.where(capacity > 0, capacity, np.inf)
    return KernelResults(
        received,
        np.clip(_largest_by_control(missing), 0.0, 1.0),
        np.clip(_largest_by_control(part), 0.0, 1.0),
    )


def _largest_by_control(values: resources.Vector) -> npt.NDArray[np.float64]:
    """Largest value among the resources of each control, (n, c)."""
    return np.stack(
        [
            values[:, resources.RESOURCES.steered_by(control)].max(
                axis=1, initial=0.0
            )
            for control in resources.CONTROLS
        ],
        axis=1,
    )
