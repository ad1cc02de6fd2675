# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest

from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.scenario import values
from tests.unit.fairness_lab.testbed import fake_backend
from tests.unit.fairness_lab.testbed import fake_node


def result_of(tmp_path, name, agents=True, **changes):
    """Run a scenario on simulated guests and give its result."""
    found = fake_backend.changed_scenario(
        reader.find(name, programs.LABORATORY), **changes
    )
    return fake_backend.result_of(found, tmp_path / 'out', agents=agents)


def needs_cpu_only(name):
    """Tell whether simulated guests, which have a CPU, can do it all."""
    found = reader.find(name, programs.LABORATORY)
    steps = [step for own in found.load.values() for step in own]
    return not any(
        vm.disks or vm.nics for vm in found.vms.values()
    ) and not any(step.wake_hz for step in steps)


SIMULATED = list(filter(needs_cpu_only, programs.LABORATORY.names()))


def test_most_scenarios_can_be_simulated():
    assert len(SIMULATED) > len(programs.LABORATORY.names()) / 2


@pytest.mark.repeated
@pytest.mark.parametrize('name', SIMULATED)
def test_the_arithmetic_of_every_scenario_works_out(tmp_path, name):
    passed, result = result_of(tmp_path, name)
    assert [
        item['name'] for item in result['checks'] if not item['passed']
    ] == []
    assert passed
    assert result['backend'] == 'fake'


def test_the_original_policy_works_out(tmp_path):
    passed, result = result_of(
        tmp_path, 'one-node-cpu', metric='GreedinessMetric', policy='thesis'
    )
    assert passed, result['checks']


def test_without_agents_no_vm_is_steered(tmp_path):
    passed, result = result_of(tmp_path, 'one-node-cpu', agents=False)
    assert passed
    assert result['rounds'] == 0
    assert result['instances']['light']['cpu_share'] == pytest.approx(1 / 3)


def node_with(**vms):
    node = fake_node.FakeNode(values.NodeSpec('n', cpu_numbers=(0,)))
    base = next(iter(reader.find('spike', programs.LABORATORY).vms.values()))
    for name, demand in vms.items():
        node.add(dataclasses.replace(base, name=name))
        node.load(name, demand_module.DemandStep(0, demand))
    return node


@pytest.mark.parametrize(
    ('demand', 'shares', 'expected'),
    [
        ({'a': 1.0, 'b': 1.0}, {}, {'a': 5.0, 'b': 5.0}),
        ({'a': 1.0, 'b': 1.0}, {'a': 3072}, {'a': 7.5, 'b': 2.5}),
        ({'a': 0.2, 'b': 1.0}, {}, {'a': 2.0, 'b': 8.0}),
        ({'a': 0.2, 'b': 0.3}, {}, {'a': 2.0, 'b': 3.0}),
    ],
)
def test_a_simulated_cpu_is_shared_by_weight(demand, shares, expected):
    node = node_with(**demand)
    for name, value in shares.items():
        node.vms[name].shares = value
    node.advance(10.0)
    got = {name: vm.counters[0] for name, vm in node.vms.items()}
    assert got == pytest.approx(expected)
    for name, vm in node.vms.items():
        waited = 10.0 * (1 - expected[name] / (10 * demand[name]))
        assert vm.stall_s == pytest.approx(waited, abs=1e-6)


@pytest.mark.parametrize(
    ('load', 'waited'), [(None, 0.8), ('closed', 0.6), ('cron', 0.8)]
)
def test_only_a_closed_loop_thinks_while_it_lacks_something(load, waited):
    node = node_with(**dict.fromkeys('abcde', 0.5))
    cycle = load and demand_module.DemandCycle(
        demand_module.CpuLoad(load), 1, 0.1
    )
    node.load('a', demand_module.DemandStep(0, 0.5, cycle=cycle))
    node.advance(1.0)
    assert node.vms['a'].counters[0] == pytest.approx(0.2)
    assert node.vms['a'].stall_s == pytest.approx(waited)


def test_a_frozen_vm_gets_nothing():
    node = node_with(a=1.0, b=1.0)
    node.vms['a'].frozen = True
    node.advance(1.0)
    assert node.vms['a'].counters[0] == 0
    assert node.vms['b'].counters[0] == pytest.approx(1.0)
