# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.model import instance

V1, V2 = cpu.CgroupVersion.V1, cpu.CgroupVersion.V2
DEFAULT, THESIS = policy.Preset.DEFAULT, policy.Preset.THESIS


def vm(vcpus=1, spec=None):
    specs = {} if spec is None else {'quota:cpu_shares': spec}
    return instance.Incarnation(
        instance.Instance(
            'a',
            'd',
            vcpus,
            2**28,
            extra_specs=specs,
        ),
        pid=7,
        start_ticks=9,
    )


def units(weight, item, preset, version):
    (found,) = cpu.to_units(
        np.array([weight]), [item.instance], preset, cpu.RANGES[version]
    )
    return found


def weight_of(value, item, preset, version):
    return cpu.to_weight(value, item.instance, preset, cpu.RANGES[version])


@pytest.mark.parametrize(
    ('weight', 'vcpus', 'spec', 'version', 'expected'),
    [
        (1.0, 1, None, V1, 1024),
        (1.0, 4, None, V1, 4096),
        (0.5, 2, None, V1, 1024),
        (1e-9, 1, None, V1, 2),
        (4.0, 64, None, V1, 262144),
        (1.0, 1, None, V2, 100),
        (2.0, 3, None, V2, 600),
        (1e-9, 1, None, V2, 1),
        (4.0, 25, None, V2, 10000),
        (1.0, 4, '512', V1, 512),
        (0.5, 4, ' 2048 ', V1, 1024),
        (1.0, 4, '512', V2, 512),
        (1.0, 2, '20000', V2, 200),
        (1.0, 2, '20000', V1, 20000),
    ],
)
def test_units_are_base_by_vcpus_by_weight(
    weight, vcpus, spec, version, expected
):
    assert units(weight, vm(vcpus, spec), DEFAULT, version) == expected


@pytest.mark.parametrize(
    'spec',
    ['', '-5', '1', '1.5', 'much', '\u0661\u0660', '9' * 5000, '262145'],
)
def test_an_extra_spec_that_is_no_usable_number_is_named_and_ignored(spec):
    assert units(1.0, vm(2, spec), DEFAULT, V1) == 2048
    (message,) = cpu.CpuScale(V1).unusable_specs([vm(2, spec)])
    assert 'a: quota:cpu_shares=' in message
    assert '2 to 262144' in message


def test_good_and_absent_extra_specs_are_not_named():
    assert cpu.CpuScale(V1).unusable_specs([vm(), vm(spec='100')]) == ()


@pytest.mark.parametrize('rank', range(-50, 51))
def test_the_thesis_preset_gives_the_original_shares(rank):
    weight = legacy_priority.weight_of(50 - rank)
    expected = ((50 - rank) * 99) // 100 + 1
    assert units(weight, vm(8, '512'), THESIS, V2) == expected
    assert units(weight, vm(8), THESIS, V1) == max(2, expected)


@pytest.mark.parametrize('version', [V1, V2])
@pytest.mark.parametrize('spec', [None, '300'])
def test_weights_come_back_from_kernel_units(version, spec):
    for row, weight in enumerate(np.geomspace(0.224, 4.47, 9)):
        item = vm(row + 1, spec)
        value = units(weight, item, DEFAULT, version)
        back = weight_of(value, item, DEFAULT, version)
        assert back == pytest.approx(weight, rel=0.02)
        assert units(back, item, DEFAULT, version) == value


@pytest.mark.parametrize('version', [V1, V2])
def test_thesis_weights_come_back_as_the_same_units(version):
    for place in range(101):
        value = units(legacy_priority.weight_of(place), vm(), THESIS, version)
        back = weight_of(value, vm(), THESIS, version)
        assert units(back, vm(), THESIS, version) == value
