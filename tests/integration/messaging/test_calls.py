# SPDX-License-Identifier: Apache-2.0

"""Calls, casts and fanouts between threads, as oslo.messaging promises."""

import signal
import threading
import time

import oslo_messaging
import pytest

from oslo_messaging_zmq import errors
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


def watchdogs():
    return [each for each in threading.enumerate() if '_watchdog' in each.name]


class Endpoint(zmq_cloud.Endpoint):
    """One that does what a test needs."""

    def __init__(self, name=''):
        super().__init__(name)
        self.contexts = []

    def note(self, ctxt, value):
        self.contexts.append(ctxt)
        return super().note(ctxt, value)

    def delay(self, ctxt, seconds):
        time.sleep(seconds)
        return seconds

    def fail(self, ctxt, kind):
        raise {
            'value': ValueError('a value'),
            'ours': errors.BadMessage('ours'),
        }[kind]

    def give(self, ctxt, size):
        return 'x' * size

    def nothing(self, ctxt):
        return None


def test_a_call_returns_the_value_of_the_endpoint(cloud):
    cloud.serve('t', 's', Endpoint())
    client = cloud.client('t', server='s')
    for value in ('text', 1, 2.5, None, [1, [2]], {'a': {'b': 1}}, b'raw'):
        assert client.call({}, 'note', value=value) == value


def test_values_are_changed_by_json_as_with_other_drivers(cloud):
    cloud.serve('t', 's', Endpoint())
    client = cloud.client('t')
    for value, expected in (
        (2**80, 2**80),
        ((1, 2), [1, 2]),
        ({1: 'a'}, {'1': 'a'}),
        ('\ud800', '\ud800'),
    ):
        assert client.call({}, 'note', value=value) == expected


def test_the_context_travels_and_says_that_no_key_was_authenticated(cloud):
    endpoint = Endpoint()
    cloud.serve('t', 's', endpoint)
    forged = {'user': 'u', 'zmq_peer': {'name': 'root', 'role': 'controller'}}
    cloud.client('t').call(forged, 'note', value=1)
    assert endpoint.contexts == [
        {
            'user': 'u',
            'zmq_peer': {'name': None, 'role': None, 'insecure': True},
        }
    ]


def test_a_call_without_a_listener_times_out(cloud):
    with pytest.raises(oslo_messaging.MessagingTimeout, match='no server'):
        cloud.client('nobody', timeout=0.2).call({}, 'note', value=1)


def test_a_mandatory_call_without_a_listener_raises_at_once(cloud):
    loose = oslo_messaging.TransportOptions(at_least_once=False)
    strict = oslo_messaging.TransportOptions(at_least_once=True)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('t', timeout=0.2, transport_options=loose).call(
            {}, 'delay'
        )
    with pytest.raises(oslo_messaging.MessageUndeliverable):
        cloud.client('t', timeout=600, transport_options=strict).call(
            {}, 'delay'
        )
    cloud.serve('t', 's', Endpoint())
    client = cloud.client('t', transport_options=strict)
    assert client.call({}, 'note', value=3) == 3


def test_mandatory_cast_to_another_server_is_refused_at_once(cloud):
    cloud.serve('t', 's', Endpoint())
    strict = oslo_messaging.TransportOptions(at_least_once=True)
    client = cloud.client('t', server='other', transport_options=strict)
    with pytest.raises(oslo_messaging.MessageUndeliverable):
        client.cast({}, 'note', value=1)


def test_a_monitored_call_outlasts_its_timeout_while_heartbeats_come(cloud):
    cloud.serve('t', 's', Endpoint())
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('t', timeout=0.5).call({}, 'delay', seconds=3)
    monitored = cloud.client('t', timeout=3600, call_monitor_timeout=2)
    assert monitored.call({}, 'delay', seconds=3) == 3


def test_a_monitored_call_ends_when_its_heartbeats_do(cloud):
    listener = cloud.process('t', 's')
    client = cloud.client('t', timeout=3600, call_monitor_timeout=2)
    assert client.call({}, 'note', value=1) == 1
    listener.signal(signal.SIGSTOP)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client.call({}, 'note', value=2)


def test_a_monitored_call_of_an_unknown_method_leaves_no_thread(cloud):
    cloud.serve('t', 's', Endpoint())
    client = cloud.client('t', call_monitor_timeout=2)
    client.call({}, 'note', value=1)
    with pytest.raises(oslo_messaging.RemoteError):
        client.call({}, 'no_such_method')
    assert watchdogs()
    wait_for_value(lambda: not watchdogs())


def test_an_exception_of_an_allowed_module_keeps_its_type(cloud):
    cloud.serve('t', 's', Endpoint())
    trusting = cloud.client('t', cloud.transport(modules=(errors.__name__,)))
    with pytest.raises(errors.BadMessage, match='ours'):
        trusting.call({}, 'fail', kind='ours')
    with pytest.raises(ValueError, match='a value'):
        trusting.call({}, 'fail', kind='value')


def test_an_exception_of_another_module_is_a_remote_error(cloud):
    cloud.serve('t', 's', Endpoint())
    with pytest.raises(oslo_messaging.RemoteError) as caught:
        cloud.client('t').call({}, 'fail', kind='ours')
    assert caught.value.exc_type == 'BadMessage'


def test_a_call_needs_a_matching_namespace_and_version(cloud):
    endpoint = Endpoint()
    endpoint.target = oslo_messaging.Target(namespace='n', version='2.3')
    cloud.serve('t', 's', endpoint)
    transport = cloud.transport()
    fitting = cloud.client('t', transport, namespace='n', version='2.1')
    assert fitting.call({}, 'note', value=1) == 1
    for wrong in (
        {'namespace': 'n', 'version': '2.4'},
        {'namespace': 'n', 'version': '1.0'},
        {'namespace': 'm', 'version': '2.1'},
    ):
        with pytest.raises(oslo_messaging.RemoteError):
            cloud.client('t', transport, **wrong).call({}, 'note', value=1)
    assert endpoint.got == [1]


def test_servers_of_a_group_take_calls_strictly_in_turn(cloud):
    for name in 'abc':
        cloud.serve('t', name, Endpoint(name))
    client = cloud.client('t')
    answers = [client.call({}, 'who') for _ in range(9)]
    assert sorted(answers[:3]) == ['a', 'b', 'c']
    assert answers == answers[:3] * 3


def test_a_call_to_one_server_reaches_no_other(cloud):
    endpoints = {name: Endpoint(name) for name in 'abc'}
    for name, endpoint in endpoints.items():
        cloud.serve('t', name, endpoint)
    client = cloud.client('t', server='b')
    assert [client.call({}, 'who') for _ in range(3)] == ['b'] * 3


def test_exchanges_do_not_mix(cloud):
    near, far = Endpoint(), Endpoint()
    cloud.serve('t', 's', near, exchange='near')
    cloud.serve('t', 's', far, exchange='far')
    transport = cloud.transport()
    cloud.client('t', transport, exchange='near').call({}, 'note', value=1)
    fanout = cloud.client('t', transport, exchange='far', fanout=True)
    fanout.cast({}, 'note', value=2)
    wait_for_value(lambda: far.got == [2])
    assert near.got == [1]


def test_casts_to_one_server_keep_their_order(cloud):
    endpoint = Endpoint()
    cloud.serve('t', 's', endpoint)
    client = cloud.client('t', server='s')
    for value in range(100):
        client.cast({}, 'note', value=value)
    wait_for_value(lambda: len(endpoint.got) == 100)
    assert sorted(endpoint.got) == list(range(100))


def test_a_fanout_reaches_every_server_once(cloud):
    endpoints = [Endpoint() for _ in range(20)]
    transport = cloud.transport()
    for number, endpoint in enumerate(endpoints):
        cloud.serve('t', f's{number}', endpoint, transport)
    client = cloud.client('t', fanout=True)
    for value in range(5):
        client.cast({}, 'note', value=value)
    wait_for_value(lambda: all(len(each.got) == 5 for each in endpoints))
    assert all(sorted(each.got) == [0, 1, 2, 3, 4] for each in endpoints)


def test_a_fanout_without_listeners_succeeds(cloud):
    cloud.client('nobody', fanout=True).cast({}, 'note', value=1)


def test_a_cast_without_a_listener_fails_after_its_tries(cloud):
    client = cloud.client('nobody', retry=0)
    with pytest.raises(
        oslo_messaging.MessageDeliveryFailure, match='no server'
    ):
        client.cast({}, 'note', value=1)


def test_a_cast_without_a_listener_and_tries_is_dropped_and_counted(cloud):
    transport = cloud.transport(undeliverable_after='0.1')
    cloud.client('nobody', transport).cast({}, 'note', value=1)
    assert zmq_cloud.statistics(transport)['casts_undelivered'] == 1


def test_too_large_a_message_is_refused_where_it_is_sent(cloud):
    cloud.serve('t', 's', Endpoint())
    transport = cloud.transport(max_message_size=10000)
    for target in ({}, {'fanout': True}):
        client = cloud.client('t', transport, **target)
        with pytest.raises(
            oslo_messaging.MessageDeliveryFailure, match='max_message_size'
        ):
            client.cast({}, 'note', value='x' * 10000)


def test_a_too_large_answer_returns_an_error_to_the_caller(cloud):
    transport = cloud.transport(max_message_size=10000)
    cloud.serve('t', 's', Endpoint(), transport)
    with pytest.raises(oslo_messaging.RemoteError) as caught:
        cloud.client('t').call({}, 'give', size=10001)
    assert 'max_message_size' in caught.value.value


def test_a_call_that_reaches_a_stopping_server_goes_to_the_next(cloud):
    stopping = cloud.serve('t', 'a', Endpoint('a'))
    client = cloud.client('t')
    assert client.call({}, 'who') == 'a'
    cloud.serve('t', 'b', Endpoint('b'))
    stopping.stop()
    assert [client.call({}, 'who') for _ in range(4)] == ['b'] * 4


def test_a_server_that_fails_to_read_a_message_gets_the_next(cloud, caplog):
    target = oslo_messaging.Target(topic='t', server='s')
    listener = cloud.transport()._listen(target, 1, None)
    taken = []

    def take(messages):
        if not taken:
            taken.append('failed')
            raise RuntimeError('no room')
        taken.extend(each.message['method'] for each in messages)

    listener.start(take)
    client = cloud.client('t')
    client.cast({}, 'first')
    client.cast({}, 'second')
    wait_for_value(lambda: taken == ['failed', 'second'])
    assert 'no room' in caplog.text


def test_a_program_may_call_its_own_server(cloud):
    transport = cloud.transport()
    cloud.serve('t', 's', Endpoint('me'), transport)
    assert cloud.client('t', transport).call({}, 'who') == 'me'


def test_many_threads_share_a_transport(cloud):
    cloud.serve('t', 's', Endpoint())
    client = cloud.client('t')
    answers = []

    def ask(first):
        for value in range(first, first + 20):
            answers.append((value, client.call({}, 'note', value=value)))

    threads = [
        threading.Thread(target=ask, args=(100 * number,))
        for number in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(zmq_cloud.PATIENCE_S)
    assert len(answers) == 160
    assert all(value == answer for value, answer in answers)


def test_without_keys_nothing_is_sent_or_heard_unless_that_is_allowed(cloud):
    transport = cloud.transport(insecure='false')
    for use in (
        lambda: cloud.client('t', transport).call({}, 'note', value=1),
        lambda: cloud.serve('t', 's', Endpoint(), transport),
    ):
        with pytest.raises(
            oslo_messaging.exceptions.ConfigurationError, match='insecure'
        ):
            use()
