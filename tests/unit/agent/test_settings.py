# SPDX-License-Identifier: Apache-2.0

"""Options become frozen values, and wrong ones clear errors."""

import json

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.agent import settings
from nova_fairness.conf import opts
from nova_fairness.model import instance
from nova_fairness.model import resources


def configured(tmp_path, text=''):
    path = tmp_path / 'agent.conf'
    path.write_text(text)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf(['--config-file', str(path)], project='test')
    return conf


def vm(**given):
    return instance.Instance(
        **{'uuid': 'u', 'domain_name': 'd', 'vcpus': 1, 'memory_bytes': 1}
        | given
    )


def test_defaults_of_options_equal_the_documentation(tmp_path):
    made = settings.from_conf(configured(tmp_path))
    assert made.metric == 'DominantShareMetric'
    assert made.policy == 'foresight'
    assert made.interval_s == 10.0
    assert made.decay_factor == 0.5
    assert made.max_weight_ratio == 20.0
    assert made.overcommit.tolist() == [1.0] * len(resources.RESOURCES)


def test_overcommit_reaches_the_resources_that_it_names(tmp_path):
    made = settings.from_conf(
        configured(
            tmp_path,
            '[fairness_node]\novercommit = cpu:16,memory:1.5\n',
        )
    )
    place = resources.RESOURCES.index
    assert made.overcommit[place('cpu_time')] == 16.0
    assert made.overcommit[place('memory')] == 1.5
    assert made.overcommit[place('disk_read')] == 1.0
    assert made.overcommit[place('net_sent')] == 1.0


def test_weights_of_users_are_read_as_numbers(tmp_path):
    made = settings.from_conf(
        configured(tmp_path, '[fairness]\nquota_weights = a:2,b:0.5\n')
    )
    assert made.quota_weights == {'a': 2.0, 'b': 0.5}


@pytest.mark.parametrize(
    ('option', 'value', 'expected'),
    [
        ('interval', '0', '0.2'),
        ('interval', 'often', 'often'),
        ('decay_factor', '1.5', ' 1'),
        ('max_weight_ratio', '0.5', ' 1'),
        ('entity', 'domain', 'domain'),
        ('quota_weights', 'a:-1', '0.001'),
        ('metric_deadline', '-1', '0.01'),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(
    tmp_path, option, value, expected
):
    with pytest.raises(ValueError, match=option) as caught:
        settings.from_conf(
            configured(tmp_path, f'[fairness]\n{option} = {value}\n')
        )
    assert expected in str(caught.value)


@pytest.mark.parametrize('of', ['uuid', 'user_id', 'project_id'])
def test_a_vm_is_exempted_by_its_whole_id(tmp_path, of):
    made = settings.from_conf(
        configured(tmp_path, '[fairness]\nexempt = x,zz\n')
    )
    assert made.is_exempt(vm(**{of: 'x'}))
    assert not made.is_exempt(vm(**{of: 'z'}))


@pytest.mark.parametrize(
    ('text', 'cpus'),
    [('', None), ('0', (0,)), ('0-2,5', (0, 1, 2, 5)), (' 3 ', (3,))],
)
def test_cpu_lists_accept_numbers_and_ranges(text, cpus):
    assert settings.parse_cpus(text) == cpus


@pytest.mark.parametrize('text', ['a', '3-1', '-1', '0,,b'])
def test_wrong_cpus_are_named_with_the_expected_form(text):
    with pytest.raises(exception.ConfigurationError, match='0-3,6'):
        settings.parse_cpus(text)


def test_owners_are_read_by_name(tmp_path):
    path = tmp_path / 'owners.json'
    path.write_text(
        json.dumps({'vm-1': {'user': 'ann', 'project': 'p'}, 'vm-2': {}})
    )
    assert settings.read_owners(str(path)) == {
        'vm-1': ('ann', 'p'),
        'vm-2': (instance.UNOWNED, instance.UNOWNED),
    }


@pytest.mark.parametrize('text', ['', '[]', '{"a": 3}', '{'])
def test_a_wrong_owners_file_is_named_with_the_expected_form(tmp_path, text):
    path = tmp_path / 'owners.json'
    path.write_text(text)
    with pytest.raises(
        exception.ConfigurationError, match=r'owners_file.*expected'
    ):
        settings.read_owners(str(path))


CPU = resources.ResourceControl.CPU
MEMORY = resources.ResourceControl.MEMORY
NETWORK = resources.ResourceControl.NETWORK


def test_all_controls_are_steered_unless_some_are_named(tmp_path):
    made = settings.from_conf(configured(tmp_path))
    assert made.controls == set(resources.CONTROLS)
    text = '[fairness]\ncontrols = cpu, network\n'
    made = settings.from_conf(configured(tmp_path, text))
    assert made.controls == {CPU, NETWORK}


def test_controls_can_have_their_own_bounds(tmp_path):
    text = (
        '[fairness]\nmax_weight_ratio = 10, network:50\n'
        'largest_step = memory:1.5,cpu:2\n'
    )
    made = settings.from_conf(configured(tmp_path, text))
    place = resources.CONTROLS.index
    assert made.max_ratios()[[place(CPU), place(NETWORK)]].tolist() == [10, 50]
    assert made.max_steps()[[place(CPU), place(MEMORY)]].tolist() == [2, 1.5]
    assert made.max_steps()[place(NETWORK)] == made.largest_step == 4.0


def test_memory_has_a_larger_tolerance_than_other_controls(tmp_path):
    made = settings.from_conf(configured(tmp_path))
    assert made.tolerance(MEMORY) > made.tolerance(CPU) == 0.01


@pytest.mark.parametrize(
    'name',
    ['max_weight_ratio', 'largest_step'],
)
@pytest.mark.parametrize('text', ['gpu:2', ':2', 'cpu', 'cpu:', 'cpu:9999'])
def test_a_wrong_bound_of_a_control_is_named(tmp_path, name, text):
    with pytest.raises(ValueError, match=name):
        settings.from_conf(
            configured(tmp_path, f'[fairness]\n{name} = {text}\n')
        )


def test_an_unknown_control_cannot_be_steered(tmp_path):
    conf = configured(tmp_path, '[fairness]\ncontrols = cpu,gpu\n')
    with pytest.raises(ValueError, match='gpu'):
        settings.from_conf(conf)
