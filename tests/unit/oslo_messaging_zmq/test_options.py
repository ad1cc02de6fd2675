# SPDX-License-Identifier: Apache-2.0

"""Options, and the query of the transport URL that goes before them."""

from oslo_config import cfg
import oslo_messaging
import pytest

from oslo_messaging_zmq import options


def parsed(conf, query=''):
    return oslo_messaging.TransportURL.parse(
        conf, f'zmq+redis://127.0.0.1:6379/0{query}'
    )


@pytest.fixture
def conf():
    return cfg.ConfigOpts()


def test_two_configurations_have_separate_options(conf):
    other = cfg.ConfigOpts()
    for each in (conf, other):
        options.register_opts(each)
    conf.set_override('queue_length', 7, 'oslo_messaging_zmq')
    conf.set_default('insecure', default=True, group='oslo_messaging_zmq')
    assert other.oslo_messaging_zmq.queue_length == 1000
    assert not other.oslo_messaging_zmq.insecure


def test_unset_options_have_their_defaults(conf):
    settings = options.read(conf, parsed(conf))
    assert not settings.insecure
    assert settings.max_message_size == 8 * 2**20
    assert settings.host


def test_the_url_query_overrides_the_configuration(conf):
    options.register_opts(conf)
    conf.set_override('queue_length', 7, 'oslo_messaging_zmq')
    settings = options.read(
        conf, parsed(conf, '?insecure=true&queue_length=5')
    )
    assert settings.insecure
    assert settings.queue_length == 5
    assert options.read(conf, parsed(conf)).queue_length == 7


@pytest.mark.parametrize(
    'query', ['?queue_length=0', '?queue_length=many', '?insecure=perhaps']
)
def test_a_wrong_value_in_the_query_is_named(conf, query):
    with pytest.raises(oslo_messaging.InvalidTransportURL, match=query[1:]):
        options.read(conf, parsed(conf, query))


def test_an_address_of_one_interface_is_told_to_others(conf):
    settings = options.read(conf, parsed(conf, '?bind_address=192.0.2.7'))
    assert settings.host == '192.0.2.7'
    named = options.read(
        conf, parsed(conf, '?bind_address=192.0.2.7&host=node1')
    )
    assert named.host == 'node1'


def test_the_rest_of_the_query_is_the_place_of_redis(conf):
    url = parsed(conf, '?insecure=true&ca=/etc/ca.pem')
    assert options.without_options(url).query == {'ca': '/etc/ca.pem'}
    assert url.query['insecure'] == 'true'
