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

CPU = resources.CONTROLS.index(resources.Control.CPU)
VMS = strategies.lists(
    strategies.tuples(
        strategies.floats(0.005, 30.0), strategies.integers(1, 64)
    ),
    min_size=1,
    max_size=10,
)


@pytest.mark.parametrize('preset', list(policy.Preset))
@hypothesis.given(VMS)
def test_cpu_units_are_those_of_an_agent(preset, vms):
    weights = np.ones((len(vms), len(resources.CONTROLS)))
    weights[:, CPU] = [weight for weight, _ in vms]
    vcpus = np.array([count for _, count in vms])
    expected = [
        cpu.to_units(
            weight,
            instance.Instance('a', 'a', count, 1 << 30),
            preset,
            kernel.RANGE,
        )
        for weight, count in vms
    ]
    found = kernel.units(weights, vcpus, preset)[:, CPU]
    assert found.tolist() == expected


def test_units_and_weights_belong_together():
    vcpus = np.array([1, 2, 4])
    weights = np.full((3, len(resources.CONTROLS)), 1.5)
    units = kernel.units(weights, vcpus, policy.Preset.DEFAULT)
    np.testing.assert_allclose(kernel.weights_of(units, vcpus), weights)
    neutral = kernel.neutral(vcpus)
    np.testing.assert_array_equal(kernel.weights_of(neutral, vcpus), 1.0)


def test_who_waits_and_what_is_busy():
    wished = np.array([build.wants(cpu_time=4, disk_read=1)] * 2)
    received = np.array([build.wants(cpu_time=1, disk_read=1)] * 2)
    outcome = kernel.measured(
        np.array([build.wants(cpu_time=2, disk_read=4, disk_written=4)]),
        np.array([0, 0]),
        received,
        wished,
    )
    disk = resources.CONTROLS.index(resources.Control.DISK)
    assert outcome.stall[:, CPU].tolist() == [0.75, 0.75]
    assert outcome.stall[:, disk].tolist() == [0, 0]
    assert outcome.busy[0, CPU] == 1.0
    assert outcome.busy[0, disk] == 0.5
