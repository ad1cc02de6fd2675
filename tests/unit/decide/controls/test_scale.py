# SPDX-License-Identifier: Apache-2.0

"""Each control's way from weights to kernel units and back."""

import dataclasses

import numpy as np
import pytest

from nova_fairness.apply.cgroup import files
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import disk
from nova_fairness.decide.controls import memory
from nova_fairness.decide.controls import network
from nova_fairness.decide.controls import scale
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import usage
from tests.unit.agent import fake_host

GIB = 2**30
VMS = (
    fake_host.vm('a-1', 'ann'),
    fake_host.vm('a-2', 'ann'),
    fake_host.vm('b-3', 'bob'),
)
SCALES = {
    'cpu v1': cpu.CpuScale(cpu.CgroupVersion.V1),
    'cpu v2': cpu.CpuScale(cpu.CgroupVersion.V2),
    'blkio': disk.DiskScale(lambda key: files.BLKIO_BFQ_WEIGHT),
    'io': disk.DiskScale(lambda key: files.IO_WEIGHT),
    'memory': memory.MemoryScale(4 * GIB, memory.MemoryRules()),
    'network': network.NetworkScale(lambda: 1e8),
}
WEIGHTS = np.array([0.5, 1.0, 2.0])


def facts(of, present=(500, 500, 500), vms=VMS, **given):
    held = {
        allocation.Knob(item.key, of.control): units
        for item, units in zip(vms, present, strict=True)
        if units is not None
    }
    return scale.ScaleFacts(
        **{
            'usage': usage.Usage(
                interval_s=1.0,
                incarnations=tuple(vms),
                amounts=np.zeros((len(vms), len(resources.RESOURCES))),
                known=np.ones(len(vms), dtype=bool),
                cpu_stall=np.zeros(len(vms)),
            ),
            'preset': policy.Preset.DEFAULT,
            'present': held,
            'exempt': frozenset(),
            'tolerance': lambda control: 0.01,
        }
        | given
    )


@pytest.fixture(params=SCALES)
def of(request):
    return SCALES[request.param]


def test_more_weight_is_never_fewer_units(of):
    units = of.units(WEIGHTS, [0, 1, 2], facts(of))
    assert list(units) == sorted(units)
    assert all(isinstance(value, int) and value > 0 for value in units)


def test_decided_weights_come_back_exactly(of):
    units = of.units(WEIGHTS, [0, 1, 2], facts(of))
    last = [
        scale.LastDecision(float(weight), value)
        for weight, value in zip(WEIGHTS, units, strict=True)
    ]
    assert (
        of.weights_in_force(units, last, facts(of)).tolist()
        == WEIGHTS.tolist()
    )


@pytest.mark.parametrize('name', ['cpu v1', 'cpu v2', 'blkio', 'io'])
def test_units_of_an_agent_before_this_one_give_its_weights(name):
    of = SCALES[name]
    units = of.units(WEIGHTS, [0, 1, 2], facts(of))
    found = of.weights_in_force(units, [None] * 3, facts(of))
    assert found == pytest.approx(WEIGHTS, rel=0.02)


def test_rates_of_an_agent_before_this_one_give_its_weights_but_for_a_factor():
    of = SCALES['network']
    units = of.units(WEIGHTS, [0, 1, 2], facts(of))
    found = of.weights_in_force(units, [None] * 3, facts(of, units))
    assert found / found[1] == pytest.approx(WEIGHTS, rel=0.001)
    assert found.mean() == pytest.approx(1.0)


def test_a_rate_that_was_not_written_stands_for_the_weight_it_gives():
    of = SCALES['network']
    decided = [
        scale.LastDecision(1.0, 1000),
        scale.LastDecision(2.0, 2000),
        None,
    ]
    found = of.weights_in_force([990, 2000, 0], decided, facts(of))
    assert found == pytest.approx([0.99, 2.0, 1.0])


def test_a_vm_that_is_not_steered_stays_neutral(of):
    decided = [
        scale.LastDecision(3.0, 700),
        None,
        scale.LastDecision(2.0, None),
    ]
    found = of.weights_in_force([None, None, None], decided, facts(of))
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_exempt_and_unreadable_vms_are_left_alone(of):
    known = facts(of, (500, None, 500), exempt=frozenset({VMS[2].key}))
    assert of.steerable_rows(known) == [0]


def test_dedicated_cpus_are_left_alone_on_the_cpu_only(of):
    item = dataclasses.replace(
        VMS[0],
        instance=dataclasses.replace(VMS[0].instance, dedicated_cpus=True),
    )
    known = facts(of, vms=(item, *VMS[1:]))
    is_cpu = of.control is resources.ResourceControl.CPU
    assert of.steerable_rows(known) == ([1, 2] if is_cpu else [0, 1, 2])


def test_shares_count_vcpus_and_flavors():
    wide = fake_host.vm('c-4', 'cat')
    wide = dataclasses.replace(
        wide, instance=dataclasses.replace(wide.instance, vcpus=4)
    )
    rich = fake_host.vm('d-5', 'dan', extra_specs={'quota:cpu_shares': '3000'})
    of = SCALES['cpu v1']
    known = facts(of, (1, 1), (wide, rich))
    assert of.units(np.ones(2), [0, 1], known) == [4096, 3000]
    assert of.sizes(known).tolist() == [4096.0, 3000.0]


def test_rates_leave_a_neutral_part_to_vms_that_are_left_alone():
    of = SCALES['network']
    known = facts(of, exempt=frozenset({VMS[2].key}))
    units = of.units(np.ones(3), [0, 1], known)
    assert sum(units) == pytest.approx(0.99e8 * 2 / 3, rel=1e-6)


def test_the_network_of_no_vms_is_divided_into_nothing():
    of = SCALES['network']
    assert of.units(np.ones(3), [], facts(of, (None,) * 3)) == []


def test_without_a_reading_no_vm_waits_for_memory_or_disks():
    for name in ('memory', 'blkio'):
        assert SCALES[name].judge(facts(SCALES[name])) is None


LEAST = {
    'cpu v1': 2,
    'cpu v2': 1,
    'blkio': 1,
    'io': 1,
    'memory': 0,
    'network': network.SMALLEST,
}


@pytest.mark.parametrize(('name', 'units'), LEAST.items())
def test_best_effort_vms_get_the_least_that_there_is(name, units):
    of = SCALES[name]
    weights = np.array([allocation.LEAST, 1.0, 1.0])
    known = facts(of, best_effort=frozenset({VMS[0].key}))
    least, *others = of.units(weights, [0, 1, 2], known)
    assert least == units
    alone = facts(of, (500, 500), VMS[1:])
    assert others == pytest.approx(of.units(np.ones(2), [0, 1], alone))


@pytest.mark.parametrize('version', cpu.CgroupVersion)
def test_best_effort_vms_are_idle_where_the_kernel_knows_that(version):
    idles = {VMS[0].key}
    of = cpu.CpuScale(version, idles.__contains__)
    every = frozenset(item.key for item in VMS[:2])
    known = facts(of, best_effort=every)
    weights = np.array([allocation.LEAST, allocation.LEAST, 1.0])
    idle, least, normal = of.units(weights, [0, 1, 2], known)
    assert idle == allocation.IDLE
    assert least == cpu.RANGES[version].smallest
    assert 0 < of.weight_of_units(idle) < of.weight_of_units(normal) / 300
    # Who is idle no more begins neutral.
    assert of.weights_in_force([idle], [None], facts(of, (0,), VMS[:1])) == [
        1.0
    ]
