# SPDX-License-Identifier: Apache-2.0

"""What anybody may send to a port, and what it does: nothing."""

import os
import socket

import msgpack
import pytest
import zmq

from oslo_messaging_zmq import messages
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value

LIMIT = 20000


class Target:
    """A listener, and a stranger with a socket."""

    def __init__(self, cloud):
        self.endpoint = zmq_cloud.Endpoint()
        self.transport = cloud.transport(max_message_size=LIMIT)
        cloud.serve('t', 's', self.endpoint, self.transport)
        engine = self.transport._driver._engine_of_process()
        self.peer = engine._listeners[0].peer
        self.client = cloud.client('t')
        self.context = zmq.Context()
        self.stranger = self.context.socket(zmq.DEALER)
        self.stranger.connect(self.peer.rpc)

    def close(self):
        self.context.destroy(0)

    def dropped(self, kind):
        name = f'received_dropped_{kind}'
        return zmq_cloud.statistics(self.transport).get(name, 0)

    def is_unharmed(self):
        return self.client.call({}, 'note', value='still here') == 'still here'


@pytest.fixture
def target(cloud):
    made = Target(cloud)
    yield made
    made.close()


def request(**changes):
    fields = {
        'kind': messages.CAST,
        'msg_id': '',
        'exchange': 'openstack',
        'topic': 't',
        'server': '',
        'client_timeout': None,
        'ctxt': {},
        'message': {'method': 'note', 'args': {'value': 'evil'}},
    }
    return messages.encode_request(
        messages.RequestMessage(**fields | changes), 2**23
    )


GOOD = request()

MALFORMED = {
    'nothing': b'',
    'garbage': os.urandom(1000),
    'text': b'hello, is there anybody in there?',
    'an empty array': msgpack.packb([]),
    'a cut message': GOOD[:-5],
    'a message and more': GOOD + b'\0',
    'too many elements': msgpack.packb([1] * 100),
    'another version': msgpack.packb([2, *msgpack.unpackb(GOOD)[1:]]),
    'an unknown kind': msgpack.packb([1, 99, *msgpack.unpackb(GOOD)[2:]]),
    'an array that claims 4 billion elements': b'\xdd\xff\xff\xff\xff',
    'deep nesting': b'\x91' * 15000 + b'\x90',
    'an extension type': msgpack.packb(
        [*msgpack.unpackb(GOOD)[:8], msgpack.ExtType(5, b'x')]
    ),
    'deep JSON': msgpack.packb(
        [
            1,
            messages.CAST + messages.JSON,
            *msgpack.unpackb(GOOD)[2:7],
            None,
            b'[' * 9000,
        ]
    ),
    'numbers as names': msgpack.packb(
        [1, messages.CAST, '', 1, 2, 3, None, {}, {}]
    ),
    'a NaN as timeout': msgpack.packb(
        [1, messages.CALL, 'i', 'openstack', 't', '', float('nan'), {}, {}]
    ),
    'a list as message': msgpack.packb(
        [1, messages.CALL, 'i', 'openstack', 't', '', None, {}, []]
    ),
    'a little too large a message': request(
        message={'method': 'note', 'args': {'value': 'x' * LIMIT}}
    ),
    'a fanout by the other socket': request(kind=messages.FANOUT),
}


@pytest.mark.parametrize('name', MALFORMED)
def test_a_malformed_message_is_dropped_and_counted(target, name, caplog):
    target.stranger.send(MALFORMED[name])
    wait_for_value(lambda: target.dropped('malformed') == 1)
    assert '127.0.0.1' in caplog.text
    assert target.is_unharmed()
    assert target.endpoint.got == ['still here']


def test_a_message_of_two_frames_is_dropped_whole(target):
    target.stranger.send_multipart([GOOD, GOOD, GOOD])
    wait_for_value(lambda: target.dropped('malformed') == 1)
    assert target.is_unharmed()
    assert target.endpoint.got == ['still here']


@pytest.mark.parametrize(
    'changes', [{'exchange': 'other'}, {'topic': 'u'}, {'server': 'r'}]
)
def test_a_message_for_another_server_is_dropped(target, changes):
    target.stranger.send(request(**changes))
    wait_for_value(lambda: target.dropped('misaddressed') == 1)
    assert target.is_unharmed()


def test_far_too_large_a_message_ends_the_connection(target):
    monitor = target.stranger.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    target.stranger.send(b'x' * (3 * LIMIT))
    assert monitor.poll(1000 * zmq_cloud.PATIENCE_S)
    target.stranger.disable_monitor()
    assert target.is_unharmed()
    assert target.endpoint.got == ['still here']


@pytest.mark.parametrize(
    'spoken', [b'', b'GET / HTTP/1.0\r\n\r\n', os.urandom(4096), b'\xff' * 64]
)
def test_a_stranger_that_speaks_no_zeromq_disturbs_no_server(target, spoken):
    _, _, port = target.peer.rpc.rpartition(':')
    with socket.create_connection(('127.0.0.1', int(port))) as stranger:
        stranger.sendall(spoken)
        assert target.is_unharmed()


def test_a_thousand_bad_messages_make_a_few_lines_of_log(target, caplog):
    for _ in range(1000):
        target.stranger.send(b'garbage')
    wait_for_value(lambda: target.dropped('malformed') == 1000)
    assert len([r for r in caplog.records if 'refused' in r.message]) < 5
    assert target.is_unharmed()


def test_answers_that_nobody_waits_for_are_dropped(target, cloud):
    """A false listener answers with garbage and for others."""
    false = target.context.socket(zmq.ROUTER)
    port = false.bind_to_random_port('tcp://127.0.0.1')
    transport = cloud.transport()
    running = transport._driver._engine_of_process()
    running._matchmaker.register(
        type(target.peer)(
            'f' * 32,
            'openstack',
            'false',
            's',
            'h',
            f'tcp://127.0.0.1:{port}',
            f'tcp://127.0.0.1:{port}',
        )
    )
    client = cloud.client('false', transport)
    answers = []
    asking = zmq_cloud.background(
        lambda: answers.append(client.call({}, 'note', value=1))
    )
    sender, payload = false.recv_multipart()
    msg_id = messages.decode_request(payload, LIMIT).msg_id
    for answer in (
        b'garbage',
        GOOD,
        messages.encode_answer(
            messages.Answer(messages.REPLY, 'f' * 32, 1), LIMIT
        ),
        messages.encode_answer(
            messages.Answer(messages.REPLY, msg_id, 'right'), LIMIT
        ),
        messages.encode_answer(
            messages.Answer(messages.REPLY, msg_id, 'twice'), LIMIT
        ),
    ):
        false.send_multipart([sender, answer])
    asking.join(zmq_cloud.PATIENCE_S)
    assert answers == ['right']
    wait_for_value(
        lambda: zmq_cloud.statistics(transport)['dropped_late_answer'] == 2
    )
    assert zmq_cloud.statistics(transport)['dropped_malformed'] == 2
