# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.decide import places
from nova_fairness.decide import policy
from nova_fairness.decide.controls import cpu
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources

V1, V2 = cpu.CgroupVersion.V1, cpu.CgroupVersion.V2
DEFAULT, THESIS = policy.Preset.DEFAULT, policy.Preset.THESIS
CPU = resources.CONTROLS.index(resources.Control.CPU)


def vm(vcpus=1, spec=None, dedicated=False, name='a'):
    specs = {} if spec is None else {'quota:cpu_shares': spec}
    return instance.Incarnation(
        instance.Instance(
            name,
            'd',
            vcpus,
            2**28,
            extra_specs=specs,
            dedicated_cpus=dedicated,
        ),
        pid=7,
        start_ticks=9,
    )


def weights(*values):
    result = np.ones((len(values), len(resources.CONTROLS)))
    result[:, CPU] = values
    return result


def units(weight, item, preset, version):
    found = cpu.allocate(weights(weight), [item], preset, version)
    assert list(found) == [allocation.Knob(item.key, resources.Control.CPU)]
    return next(iter(found.values()))


@pytest.mark.parametrize(
    ('weight', 'vcpus', 'spec', 'version', 'expected'),
    [
        (1.0, 1, None, V1, 1024),
        (1.0, 4, None, V1, 4096),
        (0.5, 2, None, V1, 1024),
        (1e-9, 1, None, V1, 2),
        (4.0, 240, None, V1, 262144),
        (1.0, 1, None, V2, 100),
        (2.0, 3, None, V2, 600),
        (1e-9, 1, None, V2, 1),
        (4.0, 64, None, V2, 10000),
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
    (message,) = cpu.unusable_specs([vm(2, spec)], V1)
    assert 'a: quota:cpu_shares=' in message
    assert '2 to 262144' in message


def test_good_and_absent_extra_specs_are_not_named():
    assert cpu.unusable_specs([vm(), vm(spec='100')], V1) == ()


@pytest.mark.parametrize('rank', range(-50, 51))
def test_the_thesis_preset_gives_the_original_shares(rank):
    weight = places.weight_of(50 - rank)
    expected = ((50 - rank) * 99) // 100 + 1
    assert units(weight, vm(8, '512'), THESIS, V2) == expected
    assert units(weight, vm(8), THESIS, V1) == max(2, expected)


def test_exempt_vms_and_dedicated_cpus_get_no_knob():
    rows = [vm(name='a'), vm(name='b'), vm(name='c', dedicated=True)]
    found = cpu.allocate(
        weights(1, 2, 3), rows, DEFAULT, V1, frozenset([rows[0].key])
    )
    assert found == {allocation.Knob(rows[1].key, resources.Control.CPU): 2048}


@pytest.mark.parametrize('version', [V1, V2])
@pytest.mark.parametrize('spec', [None, '300'])
def test_weights_come_back_from_kernel_units(version, spec):
    rows = [vm(name=f'{row}', vcpus=row + 1, spec=spec) for row in range(9)]
    given = weights(*np.geomspace(0.224, 4.47, 9))
    found = cpu.allocate(given, rows, DEFAULT, version)
    back = cpu.weights_from(found, rows, DEFAULT, version)
    np.testing.assert_allclose(back, given, rtol=0.02)
    again = cpu.allocate(back, rows, DEFAULT, version)
    assert again == found


@pytest.mark.parametrize('version', [V1, V2])
def test_thesis_weights_come_back_as_the_same_units(version):
    for place in range(101):
        found = cpu.allocate(
            weights(places.weight_of(place)), [vm()], THESIS, version
        )
        back = cpu.weights_from(found, [vm()], THESIS, version)
        assert cpu.allocate(back, [vm()], THESIS, version) == found


def test_unknown_or_senseless_units_are_neutral():
    rows = [vm(name='a'), vm(name='b'), vm(name='c', dedicated=True)]
    applied = {
        allocation.Knob(rows[1].key, resources.Control.CPU): 0,
        allocation.Knob(rows[2].key, resources.Control.CPU): 5,
        allocation.Knob('gone/1/1', resources.Control.CPU): 5,
    }
    back = cpu.weights_from(applied, rows, DEFAULT, V1)
    np.testing.assert_array_equal(back, weights(1, 1, 1))


def test_what_the_kernel_allows_is_listed_by_control():
    assert cpu.allowed(V1) == {resources.Control.CPU: (2, 262144)}
    assert cpu.allowed(V2) == {resources.Control.CPU: (1, 10000)}
