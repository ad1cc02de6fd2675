# SPDX-License-Identifier: Apache-2.0


"""Weights come to the same units here and in an agent."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from fairness_lab.node_sim import kernel
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.model import instance
from nova_fairness.model import resources
from tests.unit.fairness_lab.node_sim import build

CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
VMS = strategies.lists(
    strategies.tuples(
        strategies.floats(0.005, 30.0),
        strategies.integers(1, 512),
        strategies.integers(0, 2),
    ),
    min_size=1,
    max_size=12,
)


def units(weights, vcpus, preset, node):
    factor = kernel.factors(weights, vcpus, node)
    return kernel.units(weights, vcpus, preset, factor)


@pytest.mark.parametrize('preset', list(policy.Preset))
@hypothesis.given(VMS)
def test_cpu_units_are_those_of_the_agents_of_all_nodes(preset, vms):
    weights = np.ones((len(vms), len(resources.CONTROLS)))
    weights[:, CPU] = [weight for weight, _, _ in vms]
    vcpus = np.array([count for _, count, _ in vms])
    node = np.array([place for _, _, place in vms])
    found = units(weights, vcpus, preset, node)[:, CPU]
    for place in range(3):
        here = node == place
        expected = cpu.to_units(
            weights[here, CPU],
            [
                instance.Instance('a', 'a', int(count), 1 << 30)
                for count in vcpus[here]
            ],
            preset,
            kernel.RANGE,
        )
        assert found[here].tolist() == expected


def test_units_and_weights_belong_together():
    vcpus, node = np.array([1, 2, 4, 512]), np.array([0, 0, 0, 1])
    weights = np.full((4, len(resources.CONTROLS)), 1.5)
    factor = kernel.factors(weights, vcpus, node)
    assert factor[0] == 1.0 > factor[3]
    held = kernel.units(weights, vcpus, policy.Preset.DEFAULT, factor)
    told = kernel.weights_of(held, vcpus, factor)
    np.testing.assert_allclose(told, weights, rtol=1e-4)
    neutral = kernel.weights_of(kernel.neutral_units(vcpus), vcpus, np.ones(4))
    np.testing.assert_array_equal(neutral, 1.0)


def test_vms_are_found_within_the_range():
    assert kernel.initial_units(np.array([1, 512]))[:, CPU].tolist() == [
        100,
        10000,
    ]


def test_stall_and_busy_parts_follow_from_wants_and_use():
    wished = np.array([build.wants(cpu_time=4, disk_read=1)] * 2)
    received = np.array([build.wants(cpu_time=1, disk_read=1)] * 2)
    outcome = kernel.measure_results(
        np.array([build.wants(cpu_time=2, disk_read=4, disk_written=4)]),
        np.array([0, 0]),
        received,
        wished,
    )
    disk = resources.CONTROLS.index(resources.ResourceControl.DISK)
    assert outcome.stall[:, CPU].tolist() == [0.75, 0.75]
    assert outcome.stall[:, disk].tolist() == [0, 0]
    assert outcome.busy[0, CPU] == 1.0
    assert outcome.busy[0, disk] == 0.5
