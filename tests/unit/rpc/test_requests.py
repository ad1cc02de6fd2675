# SPDX-License-Identifier: Apache-2.0

"""The calls to the cluster service, over oslo.messaging's own driver for one
process."""

import contextlib

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


@contextlib.contextmanager
def serving(domain):
    """A client of two processes, one of which stands by."""
    conf = cfg.ConfigOpts()
    transport_conf.register_opts(conf)
    transport = oslo_messaging.get_rpc_transport(
        conf, 'fake://', allowed_remote_exmods=client.ALLOWED_REMOTE_MODULES
    )
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


@pytest.fixture
def asked(request):
    with serving(request.node.name) as made:
        yield made


@pytest.fixture(scope='module')
def refusing():
    """Asked for nothing that changes what the processes hold."""
    with serving('refusing') as made:
        yield made


def test_the_acting_process_answers_for_every_asked_one(asked):
    for_request = asked.for_request('req-1')
    for _ in range(4):
        found = for_request.call('get_request', uuid=fake_requests.REDS)
        assert found['request']['position'] == 1
    listed = asked.call('list_requests', project=None, limit=1)
    assert listed['more']
    assert asked.call('get_capacity')['hosts_count'] == 2
    assert asked.call('list_shares', limit=1)['more']
    assert len(asked.call('get_tree')['accounts']) == 1
    assert asked.call('get_tree', known='v1')['accounts'] is None
    told = asked.call('get_preemptible', servers=['x', fake_requests.REDS])
    assert told == {'servers': [fake_requests.REDS]}
    told = asked.call('get_notices', servers=['x', fake_requests.REDS])
    assert list(told['notices']) == [fake_requests.REDS]
    assert asked.call('list_limits', limit=1)['more']
    assert asked.call('list_requests', preemptible=True)['requests'] == []
    [told] = asked.call('list_preemptions', limit=1)['preemptions']
    found = asked.call('get_preemption', uuid=told['uuid'])
    assert found['preemption'] == told
    assert asked.call('list_border_hosts', limit=1)['more']
    assert asked.call('get_border')['partition']['states'] == {'batch': 2}
    for method, state in (
        ('move_host', 'cloud_asked'),
        ('cancel_host', 'batch'),
        ('get_border_host', 'batch'),
    ):
        assert asked.call(method, name='h1')['host']['state'] == state
    uuid = fake_requests.PLANS[0]
    assert asked.call('list_plans', limit=1)['more']
    assert asked.call('empty_host', name='h1')['plan']['uuid'] == uuid
    for method, state in (
        ('approve_plan', 'approved'),
        ('stop_plan', 'stopped'),
        ('get_plan', 'stopped'),
    ):
        assert asked.call(method, uuid=uuid)['plan']['state'] == state
    for hosts in (0, 2, None):
        assert asked.call('set_target', hosts=hosts) == {'target': hosts}
    told = asked.call('set_limits', account='a', limits={'time_limit': 9.0})
    assert told == {'account': 'a', 'time_limit': 9.0}
    told = asked.call('dry_run', account='a', values={'share': 9.0}, most=1)
    assert len(told['dry_run']['requests']) == 1
    told = asked.call(
        'dry_run', order='fifo', parameters={'age': 1.0}, project='p', most=9
    )
    assert told['dry_run']['requests'] == []
    for wrong in (
        {'values': {'share': 1.0}},
        {'account': 'a', 'values': {}},
        {'account': 'a', 'values': {'share': 1.0}, 'most': 51},
        {'order': 'fifo', 'parameters': {'age': None}},
        {'order': 'fifo', 'parameters': {'age': 'x'}},
    ):
        with pytest.raises(exception.BadArgument):
            asked.call('dry_run', **wrong)
    group = {'project': 'p', 'group': 'web'}
    told = asked.call('create_group', **group, rate=70.0, count=2)
    assert (told['group']['rate'], told['group']['count']) == (70.0, 2)
    told = asked.call('set_group', **group, rate=40.0)
    assert (told['group']['rate'], told['group']['count']) == (40.0, 2)
    assert asked.call('list_groups', limit=1)['more']
    asked.call('delete_group', **group)
    told = asked.call('list_prices', limit=1, audience='operator')
    assert (told['prices'][0]['host'], told['more']) == ('cmp1', True)
    told = asked.call(
        'list_prices', name='cmp1', marker='9.0', audience='operator'
    )
    assert asked.call('list_prices')['prices'] == []
    assert [each['id'] for each in told['prices']] == ['8.5']
    for given in ({'servers': ['u1']}, {'meters': {'p1': ['u1', 7]}}):
        told = asked.call('get_rates', **given)
        assert told == {'version': 'v1', 'rates': {'u1': 1.5}}
    assert asked.call('get_rates', servers=[], known='v1')['rates'] is None
    told = asked.call('report_meters', node='h1', meters={'u1': ['p1', 7]})
    assert told == {'elsewhere': ['h1', 'u1']}
    told = asked.call('extend', uuid=fake_requests.REDS, seconds=60.0)
    assert told['request']['extended'] == 60.0


@pytest.mark.parametrize(
    'servers',
    [None, 'x', {}, [1], [''], ['x'] * (protocol.MOST_NUMBERS + 1)],
    ids=['none', 'text', 'object', 'number', 'empty', 'many'],
)
@pytest.mark.parametrize('method', ['get_preemptible', 'get_notices'])
def test_requested_server_ids_are_validated(refusing, method, servers):
    with pytest.raises(exception.BadArgument):
        refusing.call(method, servers=servers)


def test_wait_times_are_requested_by_one_key(refusing):
    told = refusing.call('list_waits', by='flavor', since=5.0, limit=1)
    assert [each['name'] for each in told['waits']] == ['m1.large']
    assert told['more']
    for given in (
        {'by': 'host'},
        {'by': None},
        {'by': 'flavor', 'since': 'x'},
    ):
        with pytest.raises(exception.BadArgument):
            refusing.call('list_waits', **given)


def test_errors_keep_their_class(asked):
    with pytest.raises(exception.UnknownRequest):
        asked.call('get_request', uuid='x')
    with pytest.raises(exception.UnknownHost):
        asked.call('move_host', name='x')
    with pytest.raises(exception.UnknownPlan):
        asked.call('stop_plan', uuid='x')
    with pytest.raises(exception.UnknownPreemption):
        asked.call('get_preemption', uuid='x')
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
        {'preemptible': 'true'},
        {'colour': 'red'},
        {'filters': 'waiting'},
        {'filters': {}},
        {'filters': {'colour': 'red'}},
        {'filters': {'state': 'lost'}},
        {'filters': {'user': 3}},
        {'filters': {'since': 'noon'}},
        {'filters': {'ended': 'yes'}},
        {'filters': {'unsettled': 1}},
    ],
)
def test_arguments_of_calls_are_validated(refusing, given):
    with pytest.raises(exception.BadArgument):
        refusing.call('list_requests', **given)


@pytest.mark.parametrize('hosts', [-1, 1.0, True, '1', 10_001])
def test_the_number_of_hosts_is_validated(refusing, hosts):
    with pytest.raises(exception.BadArgument, match='from 0 to 10000'):
        refusing.call('set_target', hosts=hosts)


@pytest.mark.parametrize(
    'meters',
    [
        None,
        [],
        {'p1': 7},
        {'p1': ['u1']},
        {'p1': ['u1', -1]},
        {'p1': ['u1', 1.5]},
        {'p1': ['u1', True]},
        {'p1': ['', 1]},
        {'p1': ['u1', 2**60]},
    ],
)
def test_invalid_meters_are_refused(refusing, meters):
    with pytest.raises(exception.BadArgument):
        refusing.call('report_meters', node='h1', meters=meters)
    if meters is not None:
        with pytest.raises(exception.BadArgument):
            refusing.call('get_rates', meters=meters)


@pytest.mark.parametrize('host', [None, '', 7, 'x' * 256])
def test_a_host_that_reports_has_a_name(refusing, host):
    with pytest.raises(exception.BadArgument):
        refusing.call('report_meters', node=host, meters={})


@pytest.mark.parametrize(
    'given',
    [
        {'rate': None},
        {'rate': 'much'},
        {'rate': 1.0, 'count': 0},
        {'rate': 1.0, 'group': ''},
    ],
)
def test_an_invalid_group_is_refused(refusing, given):
    with pytest.raises(exception.BadArgument):
        refusing.call(
            'create_group', **{'project': 'p', 'group': 'g', **given}
        )


@pytest.mark.parametrize(
    'method', ['release', 'first', 'unfirst', 'hold', 'unhold']
)
def test_a_node_orders_nothing_for_a_request(method):
    operations = fake_requests.FakeOperations()
    called = getattr(requests.RequestsEndpoint(operations), method)
    context = {'zmq_peer': {'name': 'n1', 'role': 'node'}}
    with pytest.raises(oslo_messaging.ExpectedException) as refused:
        called(context, uuid=fake_requests.REDS)
    assert isinstance(refused.value.exc_info[1], exception.NotAllowed)
    assert operations.done == []
