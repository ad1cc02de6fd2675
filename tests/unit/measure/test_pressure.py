# SPDX-License-Identifier: Apache-2.0

"""What lies between two readings of pressure."""

import dataclasses
import math

import numpy as np
import pytest

from nova_fairness.measure import pressure
from nova_fairness.model import instance
from nova_fairness.model import pressure as model


def vm(number):
    return instance.Incarnation(
        instance.Instance(f'uuid-{number}', f'vm-{number}', 1, 1 << 30),
        number,
        1,
    )


def sample(time_s, rows, reclaimed=0.0, devices=None):
    """A sample; rows are VM number: (faulted, stalled, held)."""
    columns = np.array(list(rows.values()), dtype=float).reshape(-1, 3).T
    return model.PressureSample(
        time_s=time_s,
        incarnations=tuple(map(vm, rows)),
        faulted_bytes=columns[0],
        memory_stall_s=columns[1],
        held_bytes=columns[2],
        disks=tuple((model.DiskPath('vda', ('8:0',)),) for _ in rows),
        reclaimed_bytes=reclaimed,
        devices=devices or {},
    )


def test_counters_become_rates():
    found = pressure.pressure_between(
        sample(10.0, {1: (100, 1.0, 7)}, 1000),
        sample(12.0, {1: (300, 2.0, 9)}, 5000),
    )
    assert found.interval_s == 2.0
    assert found.fault_rate.tolist() == [100.0]
    assert found.memory_stall.tolist() == [0.5]
    assert found.held_bytes.tolist() == [9.0]
    assert found.reclaim_rate == 2000.0


def test_vms_are_matched_by_incarnation():
    found = pressure.pressure_between(
        sample(0.0, {1: (0, 0, 1), 2: (50, 0, 1)}),
        sample(1.0, {2: (60, 0, 1), 3: (999, 0, 1)}),
    )
    assert found.fault_rate[0] == 10.0
    assert math.isnan(found.fault_rate[1])


def test_a_vm_with_unreadable_counters_waits_for_nothing():
    found = pressure.pressure_between(
        sample(0.0, {1: (0, 0, 1), 2: (0, 0, 1)}),
        sample(1.0, {1: (9, 0.5, 7), 2: (9, 0.5, 7)}),
    )
    assert pressure.without_vms(found, frozenset()) is found
    counted = pressure.without_vms(found, frozenset({vm(1).key}))
    assert counted.fault_rate.tolist() == [0.0, 9.0]
    assert counted.memory_stall.tolist() == [0.0, 0.5]
    assert counted.held_bytes.tolist() == [7.0, 7.0]


def test_a_counter_reset_gives_no_rate():
    found = pressure.pressure_between(
        sample(0.0, {1: (500, 3.0, 1)}, 500),
        sample(1.0, {1: (10, 0.1, 1)}, 10),
    )
    assert math.isnan(found.fault_rate[0])
    assert math.isnan(found.memory_stall[0])
    assert math.isnan(found.reclaim_rate)


def test_devices_become_loads():
    before = model.DeviceTotals('sda', 'bfq', False, 1.0, 5.0)
    after = dataclasses.replace(before, busy_s=2.0, queued_s=45.0)
    found = pressure.pressure_between(
        sample(0.0, {}, devices={'8:0': before}),
        sample(2.0, {}, devices={'8:0': after, '8:16': after}),
    )
    assert found.devices == {'8:0': model.DeviceLoad('sda', 0.5, 20.0)}


def test_a_part_is_never_more_than_the_whole():
    before = model.DeviceTotals('sda', 'bfq')
    after = model.DeviceTotals('sda', 'bfq', False, 1.01, 0.0)
    found = pressure.pressure_between(
        sample(0.0, {1: (0, 0, 0)}, devices={'8:0': before}),
        sample(1.0, {1: (0, 1.2, 0)}, devices={'8:0': after}),
    )
    assert found.devices['8:0'].busy == 1.0
    assert found.memory_stall[0] == 1.0


def test_two_readings_at_one_time_are_an_error():
    with pytest.raises(ValueError, match='expected a reading after'):
        pressure.pressure_between(sample(1.0, {}), sample(1.0, {}))


BFQ = model.DeviceTotals('sda', 'bfq')
DEADLINE = model.DeviceTotals('vda', 'mq-deadline')
COST = model.DeviceTotals('vdb', 'none', cost_model=True)

HONOURS = [
    (BFQ, 'blkio.bfq.weight', True),
    (BFQ, 'io.bfq.weight', True),
    (BFQ, 'io.weight', False),
    (DEADLINE, 'io.bfq.weight', False),
    (DEADLINE, 'blkio.weight', False),
    (COST, 'io.weight', True),
    (COST, 'io.bfq.weight', False),
    (model.DeviceTotals('sda', 'cfq'), 'blkio.weight', True),
]


@pytest.mark.parametrize(('device', 'file', 'expected'), HONOURS)
def test_the_device_that_keeps_the_weights_of_a_file_is_found(
    device, file, expected
):
    assert model.honours(device, file) is expected


REASONS = {
    'a scheduler that keeps none is named': (
        ('8:0',),
        {'8:0': DEADLINE},
        'device vda uses mq-deadline',
    ),
    'the lowest device is the one that serves': (
        ('253:0', '8:0'),
        {'253:0': model.DeviceTotals('dm-0', ''), '8:0': DEADLINE},
        'device vda uses mq-deadline',
    ),
    'a network disk is on none': (
        (),
        {},
        'disk vdx is on no block device of this node',
    ),
    'a device without a queue has no scheduler': (
        ('8:0',),
        {'8:0': model.DeviceTotals('md0', '')},
        'device md0 uses no scheduler',
    ),
}


@pytest.mark.parametrize(
    ('path', 'devices', 'expected'), REASONS.values(), ids=REASONS
)
def test_the_reason_why_a_weight_has_no_effect_is_named(
    path, devices, expected
):
    disk = model.DiskPath('vdx', path)
    assert model.reason_without_weights(disk, devices) == expected
    assert not model.is_weighed(disk, devices, 'io.bfq.weight')
