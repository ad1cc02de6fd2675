# SPDX-License-Identifier: Apache-2.0

"""Reports and desired state from node to node, over ZeroMQ and Redis."""

import contextlib

from oslo_config import cfg
import oslo_messaging
import pytest

from nova_fairness.conf import transport as transport_options
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import limits
from nova_fairness.exchange import mesh
from oslo_messaging_zmq import options as zmq_options
from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import url
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value
from tests.unit.exchange import build


@pytest.fixture
def server():
    with redis_server.running() as running:
        yield running


def transport_to(server):
    conf = cfg.ConfigOpts()
    transport_options.register_opts(conf)
    zmq_options.register_opts(conf)
    conf([], project='test', default_config_files=[])
    for name, value in (
        ('insecure', True),
        ('host', redis_server.HOST),
        ('bind_address', redis_server.HOST),
    ):
        conf.set_override(name, value, group='oslo_messaging_zmq')
    return oslo_messaging.get_rpc_transport(conf, url=server.url)


@pytest.fixture
def node(server, tmp_path):
    """Makes nodes that are stopped at the end."""
    with contextlib.ExitStack() as nodes:

        def make(host, boot_id='boot'):
            transport = transport_to(server)
            client = redis_client.connect(
                url.RedisSettings(((redis_server.HOST, server.port),)),
                timeout_s=5.0,
            )
            state = desired_state.DesiredState(
                host,
                desired_store.FileStore(tmp_path / f'{host}.json'),
                desired_store.RedisStore(client, 'test'),
            )
            exchange = mesh.MeshExchange(
                transport,
                host,
                boot_id,
                10.0,
                limits.Bounds(domain='test'),
                state,
            )
            exchange.desired = state
            nodes.callback(transport.cleanup)
            nodes.callback(exchange.stop)
            nodes.callback(state.stop)
            state.start()
            exchange.start()
            wait_for_value(lambda: exchange.listener.is_listening)
            return exchange

        yield make


def hosts(exchange):
    return list(exchange.view(0.0, 'GreedinessMetric').reports)


def tell(exchange, host, number, **changes):
    exchange.publish(build.node_report(host, number, **changes))


def until_all_know(nodes, expected, number, **changes):
    """Publish round after round, as agents do, until all know all."""
    numbers = iter(range(number, number + 10_000))

    def done():
        now = next(numbers)
        for host, exchange in nodes.items():
            tell(exchange, host, now, **changes.get(host, {}))
        return all(hosts(item) == expected for item in nodes.values())

    wait_for_value(done)
    return next(numbers)


def test_nodes_hear_each_other_despite_faults_of_redis(server, node):
    nodes = {host: node(host) for host in ('n1', 'n2', 'n3')}
    number = until_all_know(nodes, ['n1', 'n2', 'n3'], 1)
    server.stop()
    before = nodes['n1'].statistics()['accepted']
    number = until_all_know(nodes, ['n1', 'n2', 'n3'], number)
    wait_for_value(lambda: nodes['n1'].statistics()['accepted'] > before)
    server.start()
    nodes['n4'] = node('n4')
    until_all_know(nodes, ['n1', 'n2', 'n3', 'n4'], number)


def test_a_restarted_node_is_heard_again(node):
    one, two = node('n1'), node('n2', 'first')
    until_all_know(
        {'n1': one, 'n2': two}, ['n1', 'n2'], 500, n2={'boot_id': 'first'}
    )
    two.stop()
    again = node('n2', 'second')
    until_all_know(
        {'n1': one, 'n2': again},
        ['n1', 'n2'],
        9_000,
        n2={'boot_id': 'second'},
    )
    wait_for_value(lambda: one.view(0.0).reports['n2'].boot_id == 'second')


def test_a_metric_chosen_on_one_node_reaches_present_and_later_nodes(node):
    one, two = node('n1'), node('n2')
    made = one.desired.set('DominantShareMetric', None, ('m', 'feedback'))
    nodes = {'n1': one, 'n2': two}
    until_all_know(nodes, ['n1', 'n2'], 1)
    wait_for_value(lambda: two.desired.current() == made)
    late = node('n3')
    wait_for_value(lambda: late.desired.current() == made)
