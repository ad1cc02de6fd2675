# SPDX-License-Identifier: Apache-2.0

"""Registering options, on one configuration or several."""

from oslo_config import cfg

from nova_fairness.conf import opts


def registered(*words):
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf(list(words), default_config_files=[], default_config_dirs=[])
    return conf


def test_options_can_be_registered_in_two_configurations():
    first, second = registered(), registered()
    first.set_override('host', 'elsewhere', group='fairness')
    first.set_override('transport_url', 'rabbit://')
    assert second.fairness.host != 'elsewhere'
    assert second.transport_url == ''
    assert registered().fairness.host != 'elsewhere'


def test_a_transport_is_none_unless_it_is_set(tmp_path):
    assert registered().transport_url == ''
    path = tmp_path / 'agent.conf'
    path.write_text('[DEFAULT]\ntransport_url = zmq+redis://somewhere\n')
    conf = registered('--config-file', str(path))
    assert conf.transport_url == 'zmq+redis://somewhere'


def test_the_sample_has_every_group_and_the_transport():
    listed = {
        group.name if group is not None else 'DEFAULT': options
        for group, options in opts.list_opts()
    }
    assert [item.dest for item in listed['DEFAULT']] == ['transport_url']
    assert {'fairness', 'fairness_exchange', 'fairness_node'} < set(listed)
