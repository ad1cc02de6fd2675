# SPDX-License-Identifier: Apache-2.0


from oslo_config import cfg
import pytest

from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.scenario import values
from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.nodes import agent
from nova_fairness.conf import opts
from tests.unit.fairness_lab.testbed import fake_backend


def options_of(tmp_path, **changes):
    found = fake_backend.changed_scenario(
        reader.find('one-node-cpu', programs.LABORATORY), **changes
    )
    return agent.configuration(found, 'node1', tmp_path)


def test_the_agent_accepts_options_of_the_laboratory(tmp_path):
    settings = options_of(tmp_path, users={'user1': values.User('user1', 2.5)})
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    text = ''.join(
        f'[{section}]\n'
        + ''.join(f'{name} = {value}\n' for name, value in options.items())
        for section, options in settings.items()
    )
    path = tmp_path / 'agent.conf'
    path.write_text(text)
    conf(['--config-file', str(path)], project='test')
    assert conf.fairness.interval == 2
    assert conf.fairness.record_path == str(tmp_path / 'rounds.jsonl')
    assert conf.fairness.quota_weights == {domain.owner_id('user user1'): 2.5}
    assert conf.fairness_node.disk_read_bandwidth == 200 * 2**20
    assert conf.fairness_node.network_bandwidth == 125e6
    assert conf.fairness_observe.prometheus_port == 0


def test_agent_options_of_a_scenario_win(tmp_path):
    more = {'fairness': {'interval': '7'}, 'DEFAULT': {'debug': 'true'}}
    settings = options_of(tmp_path, options=more)
    assert settings['fairness']['interval'] == '7'
    assert settings['DEFAULT'] == {'debug': 'true'}


@pytest.mark.parametrize(('ratio', 'expected'), [(None, None), (8.0, '8')])
def test_the_ratio_is_left_to_the_agent_unless_said(tmp_path, ratio, expected):
    settings = options_of(tmp_path, max_weight_ratio=ratio)
    assert settings['fairness'].get('max_weight_ratio') == expected


def test_agents_of_one_node_have_no_transport(tmp_path):
    assert 'DEFAULT' not in options_of(tmp_path)


@pytest.mark.parametrize('keys', ['', 'keys'])
def test_agents_of_several_nodes_are_told_how_to_talk(tmp_path, keys):
    found = reader.find('two-nodes-cpu', programs.LABORATORY)
    settings = agent.configuration(
        found, 'node2', tmp_path, tmp_path / keys if keys else None
    )
    assert settings['DEFAULT']['transport_url'].startswith('zmq+redis://')
    driver = settings['oslo_messaging_zmq']
    assert driver['bind_address'] == driver['host'] == '10.77.0.2'
    if keys:
        assert driver['keys_path'] == str(tmp_path / keys)
        assert 'insecure' not in driver
    else:
        assert driver['insecure'] == 'true'
