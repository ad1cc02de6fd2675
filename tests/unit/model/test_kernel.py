# SPDX-License-Identifier: Apache-2.0

"""Kernels that do not follow CPU weights are named."""

import pytest

from nova_fairness.model import kernel


@pytest.mark.parametrize(
    'release', ['6.18.0', '6.18.44', '6.18.44-fc-v669', '6.18', '6.18-rc3']
)
def test_a_kernel_with_the_fault_is_named_with_the_first_good_one(release):
    said = kernel.placement_fault(release)
    assert said.startswith(f'Linux {release} places')
    assert 'Linux 6.18.45 or later' in said


@pytest.mark.parametrize(
    'release', ['6.18.45', '6.18.100-1', '6.1.0-40-amd64', '7.0.1', 'odd']
)
def test_a_kernel_without_a_known_fault_is_not_named(release):
    assert kernel.placement_fault(release) == ''
    assert not kernel.may_have_fault(release)


@pytest.mark.parametrize('release', ['6.6.90', '6.12.48+deb13', '6.17.3'])
def test_a_series_that_needs_a_measurement_is_told_apart(release):
    assert kernel.placement_fault(release) == ''
    assert kernel.may_have_fault(release)


@pytest.mark.parametrize(
    ('state', 'ops', 'faulty'),
    [
        ('', '', False),
        ('disabled\n', '', False),
        ('enabled\n', 'flatcg\n', False),
        ('enabled\n', 'cidland_1.0.2_x86_64\n', False),
        ('enabled\n', 'lavd_1.0.20\n', True),
        ('enabled\n', '', True),
    ],
)
def test_a_scheduler_that_is_not_known_to_read_weights_is_named(
    state, ops, faulty
):
    said = kernel.scheduler_fault(state, ops)
    assert bool(said) == faulty
    assert not faulty or (ops.strip() or 'without a name') in said
