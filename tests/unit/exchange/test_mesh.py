# SPDX-License-Identifier: Apache-2.0

import contextlib
import logging

import numpy as np
import oslo_messaging
from oslo_messaging._drivers import impl_fake
import pytest

from nova_fairness.exchange import codec
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_state
from nova_fairness.exchange import desired_store
from nova_fairness.exchange import intake
from nova_fairness.exchange import limits
from nova_fairness.exchange import mesh
from nova_fairness.exchange import report_server
from nova_fairness.model import report
from tests.fixtures.patience import wait_for_value
from tests.unit.exchange import build
from tests.unit.exchange import fake_store
from tests.unit.exchange import fake_transport

SET = desired_module.DesiredChoice(7, 'DominantShareMetric', 'feedback', 'n9')
SHORT = limits.Bounds(domain='test')


@pytest.fixture
def transport():
    impl_fake.FakeExchangeManager.cleanup()
    made = fake_transport.working()
    yield made
    made.cleanup()


@pytest.fixture
def node(transport, tmp_path):
    """Makes nodes that are stopped at the end."""
    with contextlib.ExitStack() as nodes:

        def make(host, *, domain='test', shared=None, start=True, **options):
            state = desired_state.DesiredState(
                host,
                desired_store.FileStore(tmp_path / f'{host}.json'),
                shared,
            )
            exchange = mesh.MeshExchange(
                transport,
                host,
                options.pop('boot_id', 'boot'),
                10.0,
                options.pop('limits', limits.Bounds(domain=domain)),
                state,
                **options,
            )
            exchange.desired = state
            if start:
                exchange.start()
                nodes.callback(exchange.stop)
                wait_for_value(lambda: exchange.listener.is_listening)
            return exchange

        yield make


def hosts(exchange, now_s=0.0, **named):
    return list(exchange.view(now_s, **named).reports)


def fixed():
    return 0.0


def test_nodes_hear_each_other_and_themselves_once(node):
    one, two = node('n1', clock=fixed), node('n2', clock=fixed)
    one.publish(build.node_report('n1'))
    two.publish(build.node_report('n2'))
    wait_for_value(lambda: hosts(one) == hosts(two) == ['n1', 'n2'])
    got = one.view(3.0).reports['n2']
    assert build.same(got, build.node_report('n2'))
    assert one.view(3.0).age_s == {'n1': 0.0, 'n2': 3.0}
    wait_for_value(lambda: one.statistics()['received'] == 2)
    counts = one.statistics()
    assert (counts['sent'], counts['accepted']) == (1, 1)
    assert counts['refused_own'] == 1
    assert (counts['listening'], counts['peers'], counts['rows']) == (1, 1, 2)


def test_domains_do_not_hear_each_other(node):
    one, other = node('n1'), node('n2', domain='other')
    other.publish(build.node_report('n2'))
    wait_for_value(lambda: other.statistics().get('refused_own'))
    assert one.statistics().get('received') is None


def test_a_view_without_reports_is_empty(node):
    exchange = node('n1', start=False)
    assert exchange.view(0.0).reports == {}


def test_a_new_metric_is_compared_before_it_is_published(node):
    one, two = node('n1', clock=fixed), node('n2', clock=fixed)
    one.publish(build.node_report('n1', metric='Old'))
    two.publish(build.node_report('n2', metric='New'))
    wait_for_value(lambda: 'n2' in one.view(0.0).left_out)
    assert hosts(one) == ['n1']
    assert hosts(one, metric='New') == ['n1', 'n2']


def test_a_suspended_node_does_not_expire_reports_of_others(node):
    one, two = node('n1', clock=fixed), node('n2', clock=fixed)
    two.publish(build.node_report('n2'))
    wait_for_value(lambda: hosts(one, metric='GreedinessMetric'))
    one.publish(build.node_report('n1'))
    assert hosts(one, 60.0) == ['n1']
    two.publish(build.node_report('n2', sequence=2))
    wait_for_value(lambda: hosts(one) == ['n1', 'n2'])
    one.publish(build.node_report('n1', sequence=2, interval_s=60.0))
    assert hosts(one, 60.0) == ['n1', 'n2']


def test_gossip_reaches_a_node_that_was_down(node):
    one = node('n1')
    one.desired.take_over(SET)
    two = node('n2')
    one.publish(build.node_report('n1'))
    wait_for_value(lambda: two.desired.current() == SET)


@pytest.mark.parametrize(('carries', 'kind'), [(True, bytes), (False, str)])
def test_numbers_are_sent_as_bytes_if_the_transport_allows(
    transport, node, carries, kind, monkeypatch
):
    monkeypatch.setattr(
        transport._driver, 'carries_bytes', carries, raising=False
    )
    sent = []
    exchange = node('n1', start=False)
    monkeypatch.setattr(exchange._sender, 'replace_message', sent.append)
    exchange.publish(build.node_report('n1'))
    assert type(sent[0]['table']) is kind


SECURE = {'name': 'n2', 'role': 'node'}


def handed(exchange, context, message):
    """Hand a message over as the listener does, and count."""
    before = exchange.statistics()
    exchange.intake.received(context, message)
    after = exchange.statistics()
    return {
        name: number - before.get(name, 0)
        for name, number in after.items()
        if name.startswith(('accepted', 'refused')) and number
    }


def from_n2(**changes):
    good = codec.encode(build.node_report('n2'), changes.pop('wish', None))
    return {**good, **changes}


KEYS = {
    'its own': (SECURE, 'accepted'),
    'none, on a transport without keys': (None, 'accepted'),
    'none, and the driver says so': (
        {'name': None, 'role': None, 'insecure': True},
        'accepted',
    ),
    'of another node': ({'name': 'n3', 'role': 'node'}, 'refused_identity'),
    'of a controller': (
        {'name': 'n2', 'role': 'controller'},
        'refused_role',
    ),
    'without a role': ({'name': 'n2'}, 'refused_malformed'),
    'of a name that cannot be': (
        {'name': 'n' * 999, 'role': 'node'},
        'refused_malformed',
    ),
    'of another form': ('n2', 'refused_malformed'),
}


@pytest.mark.parametrize(('key', 'expected'), KEYS.values(), ids=KEYS)
def test_a_report_is_taken_from_the_key_of_its_host(node, key, expected):
    exchange = node('n1', start=False, clock=fixed)
    assert handed(exchange, {intake.PEER: key}, from_n2()) == {expected: 1}


def test_a_lying_node_is_named_by_its_key_and_not_by_its_claim(node):
    exchange = node('n1', start=False, clock=fixed)
    handed(exchange, {intake.PEER: {**SECURE, 'name': 'n3'}}, from_n2())
    left_out = exchange.view(0.0, 'GreedinessMetric').left_out
    assert list(left_out) == ['n3']
    assert 'the key of n3 sent a report of n2' in left_out['n3']


def test_a_false_capacity_is_left_out_and_reported(node):
    exchange = node('n1', start=False, clock=fixed)
    lie = from_n2(capacity=[1e30] * len(build.RESOURCES))
    assert handed(exchange, {}, lie) == {'refused_bounds': 1}
    left_out = exchange.view(0.0, 'GreedinessMetric').left_out
    assert 'capacity of cpu_time is 1e+30' in left_out['n2']


def test_a_host_may_claim_its_configured_capacity_and_not_more(node, tmp_path):
    small = np.full(len(build.RESOURCES), 50.0)
    exchange = node(
        'n1',
        start=False,
        clock=fixed,
        limits=limits.Bounds(capacities=(('n2*', small),)),
    )
    other = codec.encode(build.node_report('n3'))
    assert handed(exchange, {}, other) == {'accepted': 1}
    assert handed(exchange, {}, from_n2())['refused_bounds'] == 1
    left_out = exchange.view(0.0, 'GreedinessMetric').left_out
    assert 'expected 0 to 50' in left_out['n2']
    assert 'peer_capacity_file: n2*' in left_out['n2']


def test_a_changed_capacity_within_bounds_is_logged(node, caplog):
    exchange = node('n1', start=False, clock=fixed)
    for sequence, capacity in enumerate((100.0, 100.0, 900.0, 900.0)):
        sent = build.node_report('n2', sequence, capacity=capacity)
        handed(exchange, {}, codec.encode(sent))
    said = [text for text in caplog.messages if 'another capacity' in text]
    assert len(said) == 1
    assert 'n2' in said[0]
    assert 'memory 100 became 900' in said[0]


@pytest.mark.parametrize('context', [None, [], 'x', {}])
def test_a_context_of_any_type_is_accepted(node, context):
    exchange = node('n1', start=False)
    assert handed(exchange, context, from_n2()) == {'accepted': 1}


@pytest.mark.parametrize(
    ('key', 'shared', 'expected'),
    [
        (None, None, SET),
        (SECURE, None, SET),
        (None, fake_store.FakeStore(), SET),
        (SECURE, fake_store.FakeStore(), None),
    ],
    ids=[
        'no keys, no store',
        'no store',
        'no keys',
        'keys and a store that knows nothing of it',
    ],
)
def test_the_store_overrides_gossip_of_a_node(node, key, shared, expected):
    exchange = node('n1', shared=shared, start=False)
    handed(exchange, {intake.PEER: key}, from_n2(wish=SET))
    assert exchange.desired.current() == expected


@pytest.mark.parametrize('hangs', [True, False], ids=['hangs', 'fails'])
def test_an_absent_broker_delays_no_caller(
    node, transport, hangs, monkeypatch
):
    monkeypatch.setattr(report_server, '_RETRY_S', 0.01)
    outage = fake_transport.FakeOutage(transport, hangs=hangs)
    exchange = node('n1', start=False)
    exchange.start()
    assert outage.tried.wait(30)
    for number in range(1, 100):
        exchange.publish(build.node_report('n1', number))
        assert exchange.view(0.0).reports['n1'].sequence == number
    assert exchange.statistics()['listening'] == 0
    outage.end()
    wait_for_value(lambda: exchange.statistics()['listening'] == 1)
    exchange.publish(build.node_report('n1', 100))
    wait_for_value(lambda: exchange.statistics().get('refused_own'))
    exchange.stop()


def test_a_report_not_sent_in_time_gives_way_to_a_newer_one(node, transport):
    two = node('n2')
    outage = fake_transport.FakeOutage(transport, hangs=True)
    one = node('n1', start=False)
    one.start()
    for number in range(1, 10):
        one.publish(build.node_report('n1', number))
    outage.end()
    wait_for_value(
        lambda: (
            two.view(0.0, 'GreedinessMetric').reports
            and two.view(0.0, 'GreedinessMetric').reports['n1'].sequence == 9
        )
    )
    counts = one.statistics()
    assert counts['sent'] + counts['replaced'] == 9
    assert counts['sent'] <= 2
    one.stop()


HOSTILE_CALLS = {
    'a method that is not offered': {'method': 'target', 'args': {}},
    'a method that does not exist': {'method': 'rm', 'args': {}},
    'another version': {'method': 'report', 'args': {}, 'version': '9.0'},
    'a version of garbage': {'method': 'report', 'version': 'x' * 10_000},
    'another namespace': {'method': 'report', 'args': {}, 'namespace': 'n'},
    'no arguments': {'method': 'report'},
    'other arguments': {'method': 'report', 'args': {'x': 1}},
    'arguments of another form': {'method': 'report', 'args': 7},
    'nothing': {},
}


def test_hostile_calls_are_counted_and_the_listener_lives(node, transport):
    exchange = node('n1')
    target = oslo_messaging.Target(
        exchange='test', topic=report_server.TOPIC, fanout=True
    )
    for message in HOSTILE_CALLS.values():
        transport._send(target, {}, {'args': {}, **message})
    for message in (
        {'method': 'report', 'args': {'report': 'garbage'}},
        {'method': 'report', 'args': {'report': {}, 'later': 1}},
    ):
        transport._send(target, {}, message)
    exchange.publish(build.node_report('n1'))
    wait_for_value(lambda: exchange.statistics().get('refused_own'))
    counts = exchange.statistics()
    assert counts['refused_malformed'] == 2
    assert counts['refused_call'] + counts['refused_own'] + 2 == (
        len(HOSTILE_CALLS) + 3
    )


def test_stop_may_be_repeated_or_called_before_start(node):
    exchange = node('n1', start=False)
    exchange.stop()
    exchange.stop()


def view(*usable, **left_out):
    return report.View(dict.fromkeys(usable), {}, left_out)


@pytest.fixture
def noted(caplog):
    caplog.set_level(logging.INFO)
    book = mesh.ViewLog(logging.getLogger('test'))

    def note(seen):
        caplog.clear()
        book.log_changes(seen)
        return caplog.messages

    return note


def test_only_changed_peer_states_are_logged(noted):
    assert noted(view('n1')) == ['Reports in use: n1']
    assert noted(view('n1')) == []
    assert noted(view('n1', n2='silent for 31 s')) == [
        'Reports not in use: n2 (silent for 31 s)'
    ]
    assert noted(view('n1', n2='silent for 41 s')) == []
    assert noted(view('n1', n2='measures with X, not with Y')) == [
        'Reports not in use: n2 (measures with X, not with Y)'
    ]
    assert noted(view('n1', 'n2')) == ['Reports in use: n2']


def test_a_loss_of_many_peers_is_logged_in_one_line(noted):
    hosts = {f'n{number:02d}': 'silent for 31 s' for number in range(50)}
    (line,) = noted(view(**hosts))
    assert line.endswith('n09 (silent for 31 s) and 40 more')
