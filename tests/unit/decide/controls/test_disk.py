# SPDX-License-Identifier: Apache-2.0

"""Who waits for the same disk, and who for memory that others have."""

import numpy as np
import pytest

from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import disk
from nova_fairness.model import pressure as pressure_model
from tests.unit.decide.controls import nodes

MIB = float(1 << 20)
SATURATED = pressure_model.DeviceLoad('sda', 0.99, 20.0)


DISKS = {
    'two that use a saturated device compete': (
        {'8:0': SATURATED},
        [('8:0',), ('8:0',)],
        [50 * MIB, 50 * MIB],
        (True, [True, True]),
    ),
    'one alone does not compete': (
        {'8:0': SATURATED},
        [('8:0',), ('8:0',)],
        [50 * MIB, 0.0],
        (False, [False, False]),
    ),
    'one that hardly uses it does not count': (
        {'8:0': SATURATED},
        [('8:0',), ('8:0',), ('8:0',)],
        [50 * MIB, 50 * MIB, 1 * MIB],
        (True, [True, True, False]),
    ),
    'many that each move little compete like a few': (
        {'8:0': SATURATED},
        [('8:0',)] * 60,
        [1 * MIB] * 60,
        (True, [True] * 60),
    ),
    'a large one competes with many small ones': (
        {'8:0': SATURATED},
        [('8:0',)] * 61,
        [40 * MIB] + [1 * MIB] * 60,
        (True, [True] * 61),
    ),
    'many that write logs are no rivals of one': (
        {'8:0': SATURATED},
        [('8:0',)] * 61,
        [99 * MIB] + [0.03 * MIB] * 60,
        (False, [False] * 61),
    ),
    'a device at which one request is at a time is not saturated': (
        {'8:0': pressure_model.DeviceLoad('sda', 1.0, 1.0)},
        [('8:0',), ('8:0',)],
        [50 * MIB, 50 * MIB],
        (False, [False, False]),
    ),
    'a device with idle time is not saturated': (
        {'8:0': pressure_model.DeviceLoad('sda', 0.5, 20.0)},
        [('8:0',), ('8:0',)],
        [50 * MIB, 50 * MIB],
        (False, [False, False]),
    ),
    'a VM on another device does not wait': (
        {
            '8:0': SATURATED,
            '8:16': pressure_model.DeviceLoad('sdb', 0.2, 0.2),
        },
        [('8:0',), ('8:0',), ('8:16',)],
        [50 * MIB, 50 * MIB, 50 * MIB],
        (True, [True, True, False]),
    ),
    'a device below another counts': (
        {'253:0': pressure_model.DeviceLoad('dm-0', 1, 1), '8:0': SATURATED},
        [('253:0', '8:0'), ('8:0',)],
        [50 * MIB, 50 * MIB],
        (True, [True, True]),
    ),
    'a network disk waits for no VM here': (
        {'8:0': SATURATED},
        [('8:0',), ()],
        [50 * MIB, 50 * MIB],
        (False, [False, False]),
    ),
}


@pytest.mark.parametrize(
    ('devices', 'paths', 'moved', 'expected'), DISKS.values(), ids=DISKS
)
def test_vms_that_wait_for_the_same_disk_contend(
    devices, paths, moved, expected
):
    contended, wanting = disk.judge(
        nodes.pressed(devices, paths), np.array(moved)
    )
    assert (contended, wanting.tolist()) == expected


def test_a_paused_vm_wants_no_disk():
    found = nodes.pressed(
        {'8:0': SATURATED},
        [('8:0',), ('8:0',)],
        incarnations=(nodes.vm(1), nodes.vm(2, paused=True)),
    )
    contended, _ = disk.judge(found, np.array([MIB, MIB]))
    assert not contended


def traffic(read, written):
    return disk.DiskTraffic(np.array(read), np.array(written))


def test_throttles_divide_delivered_bytes_by_weight():
    limits = disk.throttle_rates(
        np.array([1.0, 3.0]),
        traffic([40 * MIB, 40 * MIB], [8 * MIB, 0.0]),
        np.array([0, 1]),
    )
    assert limits == {0: (21 * MIB, round(2.1 * MIB))}


@pytest.mark.parametrize('rows', [[], [0]])
def test_no_vm_is_throttled_when_no_other_waits(rows):
    limits = disk.throttle_rates(
        np.array([1.0, 3.0]),
        traffic([40 * MIB, 40 * MIB], [0.0, 0.0]),
        np.array(rows, dtype=int),
    )
    assert limits == {}


def test_equal_weights_are_not_throttled():
    limits = disk.throttle_rates(
        np.array([2.0, 2.0]),
        traffic([90 * MIB, 10 * MIB], [0.0, 0.0]),
        np.array([0, 1]),
    )
    assert limits == {}


def test_no_throttle_stops_a_guest():
    limits = disk.throttle_rates(
        np.array([0.001, 1.0]),
        traffic([MIB, MIB], [0.0, 0.0]),
        np.array([0, 1]),
    )
    assert limits == {0: (1 << 20, 1 << 20)}


BFQ = 'blkio.bfq.weight'
UNITS = [
    (1.0, BFQ, policy.Preset.DEFAULT, 100),
    (4.47, BFQ, policy.Preset.DEFAULT, 447),
    (0.001, BFQ, policy.Preset.DEFAULT, 1),
    (100.0, 'io.weight', policy.Preset.DEFAULT, 1000),
    (1.0, 'blkio.weight', policy.Preset.DEFAULT, 500),
    (0.001, 'blkio.weight', policy.Preset.DEFAULT, 10),
    (legacy_priority.weight_of(0), BFQ, policy.Preset.THESIS, 100),
    (legacy_priority.weight_of(75), BFQ, policy.Preset.THESIS, 775),
    (legacy_priority.weight_of(100), BFQ, policy.Preset.THESIS, 1000),
]


@pytest.mark.parametrize(('weight', 'file', 'preset', 'expected'), UNITS)
def test_disk_weights_convert_to_units(weight, file, preset, expected):
    assert disk.file_units(weight, file, preset) == expected


@pytest.mark.parametrize('file', disk.BASES)
@pytest.mark.parametrize('value', [50, 100, 333, 1000])
def test_disk_units_convert_back_to_weights(file, value):
    preset = policy.Preset.DEFAULT
    weight = disk.file_weight(value, file, preset)
    assert disk.file_units(weight, file, preset) == value


@pytest.mark.parametrize('place', range(0, 101, 10))
def test_thesis_disk_units_convert_back_to_weights(place):
    weight = legacy_priority.weight_of(place)
    value = disk.file_units(weight, BFQ, policy.Preset.THESIS)
    assert disk.file_weight(value, BFQ, policy.Preset.THESIS) == weight


def test_nodes_are_judged_apart_by_bytes_of_their_own_vms():
    node = np.repeat([0, 1], [2, 60])
    moved = np.concatenate([[1e9, 1.0], np.ones(60)])
    found = disk.has_much_traffic(node, moved, 2)
    assert found.tolist() == [True, False] + [True] * 60
