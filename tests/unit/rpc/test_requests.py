# SPDX-License-Identifier: Apache-2.0

"""The calls to the cluster service, over oslo.messaging's own driver for one
process."""

from oslo_config import cfg
import oslo_messaging
import pytest

from nova_fairness import exception
from nova_fairness.conf import transport as transport_conf
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import server
from tests.unit.api_ext import fake_requests

ENOUGH_S = 30.0


class NotActing(fake_requests.FakeOperations):
    """A process that stands by."""

    def __init__(self):
        super().__init__()
        self.error = exception.NotLeading('one')


@pytest.fixture
def asked(request):
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    transport = oslo_messaging.get_rpc_transport(
        conf, 'fake://', allowed_remote_exmods=client.ALLOWED_REMOTE_MODULES
    )
    domain = request.node.name
    servers = [
        server.FairnessServer(
            transport,
            domain,
            host,
            requests.RequestsEndpoint(operations),
            protocol.REQUESTS_TOPIC,
        )
        for host, operations in (
            ('one', fake_requests.FakeOperations()),
            ('two', NotActing()),
        )
    ]
    for each in servers:
        each.start()
        assert each.wait_ready(ENOUGH_S)
    yield requests.RequestsClient(
        client.FairnessClient(
            transport, ENOUGH_S, domain, topic=protocol.REQUESTS_TOPIC
        )
    )
    for each in servers:
        each.stop()


def test_the_process_that_acts_answers_whoever_is_asked(asked):
    of_request = asked.of_request('req-1')
    for _ in range(4):
        found = of_request.call('get_request', uuid=fake_requests.REDS)
        assert found['request']['position'] == 1
    listed = asked.call('list_requests', project=None, limit=1)
    assert listed['more']
    assert asked.call('get_capacity')['hosts_count'] == 2
    assert asked.call('list_shares', limit=1)['more']
    assert len(asked.call('get_tree')['accounts']) == 1
    assert asked.call('get_tree', known='v1')['accounts'] is None
    assert asked.call('list_limits', limit=1)['more']
    told = asked.call('set_limits', account='a', limits={'time_limit': 9.0})
    assert told == {'account': 'a', 'time_limit': 9.0}
    told = asked.call('extend', uuid=fake_requests.REDS, seconds=60.0)
    assert told['request']['extended'] == 60.0


def test_errors_keep_their_class(asked):
    with pytest.raises(exception.UnknownRequest):
        asked.call('get_request', uuid='x')
    asked.call('cancel', uuid=fake_requests.REDS, by_operator=True)
    with pytest.raises(exception.IllegalStep, match='cancelled'):
        asked.call('release', uuid=fake_requests.REDS)


@pytest.mark.parametrize(
    'given',
    [
        {'limit': 0},
        {'limit': True},
        {'limit': protocol.MOST_REQUESTS + 1},
        {'marker': 3},
        {'project': ''},
        {'colour': 'red'},
    ],
)
def test_arguments_are_judged(asked, given):
    with pytest.raises(exception.BadArgument):
        asked.call('list_requests', **given)
