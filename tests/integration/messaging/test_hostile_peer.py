# SPDX-License-Identifier: Apache-2.0

"""A peer with a good key that sends what no driver would send."""

import contextlib
import pathlib
import random
import socket
import time

import msgpack
import pytest
import zmq

from oslo_messaging_zmq import messages
from oslo_messaging_zmq.matchmaker import contract
from tests.fixtures import curve_cloud
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value

LIMIT = 1 << 20
CONNECTIONS = 30
"""That one key may have to a socket."""

ADDRESS = ('openstack', 'topic', 'server')


class Endpoint:
    """Remembers what it was called with."""

    def __init__(self):
        self.calls = []
        self.asked = 0

    def much(self, ctxt):
        self.asked += 1
        return 'x' * 20_000

    def work(self, ctxt):
        self.asked += 1
        time.sleep(0.4)

    def note(self, ctxt, value):
        self.calls.append((ctxt.get('zmq_peer'), value))
        return value


class Attack:
    """A server with keys, and a raw socket of a peer with a good key."""

    def __init__(self, cloud, keys, context):
        self.endpoint = Endpoint()
        self.cloud, self.context = cloud, context
        # All before the server starts: what it refuses comes again later.
        self.places = {
            name: keys.node(name) for name in ('server', 'honest', 'evil')
        }
        self.evil = curve_cloud.ring(self.places['evil'])
        self.transport = self.join('server')
        cloud.serve('topic', 'server', self.endpoint, self.transport)
        self.listener = self.transport._driver._engine_of_process()._listeners[
            0
        ]

    def join(self, name):
        """A transport with the keys of a node."""
        return self.cloud.transport(
            insecure='false',
            keys_path=str(self.places[name]),
            max_message_size=LIMIT,
            peer_connections=CONNECTIONS,
        )

    def socket(self, endpoint):
        """A raw connection to one of the server's sockets."""
        made = self.context.socket(zmq.DEALER)
        made.linger = 0
        made.curve_publickey = self.evil.public.encode()
        made.curve_secretkey = self.evil.secret
        made.curve_serverkey = self.listener.peer.key.encode()
        made.connect(endpoint)
        return made

    def dropped(self, kind='malformed'):
        """How many messages the server has dropped."""
        counts = self.transport._driver.statistics()
        return counts.get(f'received_dropped_{kind}', 0)

    def handshakes(self, kind):
        """How many handshakes came to this, such as ``admitted``."""
        return self.transport._driver.statistics()[f'access_{kind}']

    def still_serves(self):
        """Whether an honest peer is served as if nothing had been."""
        client = self.cloud.client('topic', self.join('honest'))
        value = client.call({}, 'note', value='fine')
        peer, _ = self.endpoint.calls.pop()
        assert self.endpoint.calls == [], 'nothing bad came through'
        return value == 'fine' and peer == {'name': 'honest', 'role': 'node'}


@pytest.fixture
def attack(tmp_path):
    with curve_cloud.context() as context, zmq_cloud.running() as cloud:
        yield Attack(cloud, curve_cloud.Cloud(tmp_path), context)


def request(**changes):
    fields = {
        'kind': messages.CALL,
        'msg_id': 'x',
        'exchange': ADDRESS[0],
        'topic': ADDRESS[1],
        'server': ADDRESS[2],
        'client_timeout': None,
        'ctxt': {},
        'message': {'method': 'note', 'args': {'value': 1}},
    }
    return [messages.VERSION, *{**fields, **changes}.values()]


def nested(depth, opening=b'\x91', end=b'\xc0'):
    return opening * depth + end


def packed(**changes):
    return msgpack.packb(request(**changes))


GOOD = packed()
NOISE = random.Random(7)
BAD = {
    'empty': [b''],
    'noise': [NOISE.randbytes(n) for n in (1, 10, 1000, LIMIT)],
    'truncated': [GOOD[:n] for n in range(1, len(GOOD), 7)],
    'trailing': [GOOD + b'\0'],
    'text': [b'GET / HTTP/1.1\r\n\r\n', b'{"version": 1}'],
    'deep': [nested(LIMIT - 1), nested(100, b'\x81\xa1a'), nested(10**5)],
    'deep inside': [packed(ctxt={'a': [[[]]]})[:-9] + nested(5000)],
    'counts that lie': [
        b'\xdd\xff\xff\xff\xff',
        b'\xdf\xff\xff\xff\xff',
        b'\xc6\xff\xff\xff\xff',
        b'\x99\x01\x01\xa1x\xdf\x7f\xff\xff\xff',
    ],
    'versions': [
        msgpack.packb([v, *request()[1:]]) for v in (0, 2, -1, '1', None)
    ],
    'kinds': [packed(kind=k) for k in (0, 4, 5, 6, 7, 10**9, 'call', 1.0)],
    'other socket': [packed(kind=messages.FANOUT)],
    'types': [
        packed(exchange=1),
        packed(topic=[]),
        packed(server={}),
        packed(msg_id=7),
        packed(ctxt=[]),
        packed(message='m'),
        packed(client_timeout='soon'),
        packed(client_timeout=float('nan')),
        packed(client_timeout=float('-inf')),
        packed(client_timeout=-1),
    ],
    'keys': [packed(ctxt={1: 2}), packed(message={'a': {None: 1}})],
    'extensions': [packed(ctxt={'a': msgpack.ExtType(5, b'x' * 100)})],
    'json': [
        packed(kind=messages.CALL | messages.JSON, ctxt=None, message=text)
        for text in (b'', b'[' * 10**5, b'[1, 2]', b'{}', b'[NaN', 'x')
    ],
    'a million users': [
        packed(message={'u': [k % 256 for k in range(10**6)]})
    ],
    'a little too large': [packed(ctxt={'a': 'x' * LIMIT})],
}


@pytest.mark.parametrize('name', BAD)
def test_a_payload_that_is_no_message_is_dropped_counted_and_named(
    attack, name, caplog
):
    socket = attack.socket(attack.listener.peer.rpc)
    for payload in BAD[name]:
        socket.send(payload)
    assert wait_for_value(lambda: attack.dropped() == len(BAD[name])), (
        attack.dropped(),
        len(BAD[name]),
    )
    named = wait_for_value(
        lambda: [m for m in caplog.messages if 'evil (127.0.0.1)' in m]
    )
    assert attack.still_serves()
    assert [m for m in caplog.messages if 'evil (127.0.0.1)' in m] == named
    assert len(named) == 1
    assert len(named[0]) < 1000


def test_messages_of_many_frames_are_dropped(attack):
    socket = attack.socket(attack.listener.peer.rpc)
    socket.send_multipart([GOOD, b'', GOOD])
    socket.send_multipart([b''] * 1000)
    assert wait_for_value(lambda: attack.dropped() == 2)
    assert attack.still_serves()


def test_a_message_of_a_peer_for_another_server_is_not_taken(attack):
    socket = attack.socket(attack.listener.peer.rpc)
    for changes in ({'topic': 'x'}, {'exchange': 'x'}, {'server': 'x'}):
        socket.send(packed(**changes))
    assert wait_for_value(lambda: attack.dropped('misaddressed') == 3)
    assert attack.still_serves()


def test_calls_do_not_come_by_the_socket_of_fanouts(attack):
    socket = attack.socket(attack.listener.peer.fanout)
    socket.send(GOOD)
    assert wait_for_value(lambda: attack.dropped() == 1)
    assert attack.still_serves()


def test_a_sender_cannot_choose_its_name(attack):
    forged = {'name': 'ctl', 'role': 'controller'}
    socket = attack.socket(attack.listener.peer.rpc)
    socket.send(packed(ctxt={'zmq_peer': forged}))
    assert wait_for_value(lambda: attack.endpoint.calls)
    assert attack.endpoint.calls == [({'name': 'evil', 'role': 'node'}, 1)]


def resident_bytes():
    pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
    return int(pages) * 4096


def test_a_message_far_too_large_ends_its_connection_unread(attack):
    socket = attack.socket(attack.listener.peer.rpc)
    lost = curve_cloud.disconnections(socket)
    before = resident_bytes()
    # Sent by the same process, which has it in memory itself.
    payload = bytes(64 * LIMIT)
    socket.send(payload, copy=False)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    assert resident_bytes() - before < 2 * len(payload)
    assert attack.dropped() == 0
    assert attack.still_serves()


def send_without_end(socket):
    """One message that has a thousand frames, none of them too large."""
    frame = zmq.Frame(bytes(LIMIT))
    for _ in range(1000):
        socket.send(frame, zmq.SNDMORE, copy=False)
    socket.send(b'')


def test_a_message_of_frames_without_end_ends_its_connection_unread(attack):
    socket = attack.socket(attack.listener.peer.rpc)
    lost = curve_cloud.disconnections(socket)
    before = resident_bytes()
    send_without_end(socket)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    assert resident_bytes() - before < 500 * LIMIT
    assert attack.dropped() == 0
    assert attack.still_serves()


@pytest.mark.parametrize('way', ['call', 'fanout'])
def test_a_server_that_sends_without_end_loses_its_connection(attack, way):
    server = attack.context.socket(zmq.DEALER)
    server.linger = 0
    server.curve_publickey = attack.evil.public.encode()
    server.curve_secretkey = attack.evil.secret
    server.curve_server = True
    port = server.bind_to_random_port('tcp://127.0.0.1')
    lost = curve_cloud.disconnections(server)
    place = f'tcp://127.0.0.1:{port}'
    peer = contract.AnnouncedListener(
        'e' * 32,
        *ADDRESS[:2],
        'evil',
        'evil',
        place,
        place,
        attack.evil.public,
    )
    engine = attack.join('honest')._driver._engine_of_process()
    before = resident_bytes()
    if way == 'call':
        engine._caller.settle((peer,))
    else:
        engine._fanout.send(*ADDRESS[:2], (peer,), GOOD)
        assert server.poll(curve_cloud.PATIENCE_S * 1000)
        engine._fanout.send(*ADDRESS[:2], (peer,), GOOD)
    send_without_end(server)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    assert resident_bytes() - before < 500 * LIMIT


def test_a_flood_of_garbage_leaves_no_memory_behind(attack):
    socket = attack.socket(attack.listener.peer.rpc)
    garbage = b'\x91' * 100_000
    sent = 0

    def flood(count):
        nonlocal sent
        for _ in range(count):
            socket.send(garbage)
        sent += count
        assert wait_for_value(lambda: attack.dropped() == sent)

    flood(200)
    before = resident_bytes()
    # The sender's own queue is part of this process, so it stays short.
    for _ in range(10):
        flood(100)
    assert resident_bytes() - before < 50_000_000
    assert attack.still_serves()


def open_files():
    return len(list(pathlib.Path('/proc/self/fd').iterdir()))


def test_half_open_connections_are_ended_and_cost_no_descriptor(attack):
    host, _, number = attack.listener.peer.rpc[6:].rpartition(':')
    assert attack.still_serves()
    before = open_files()
    silent = [
        socket.create_connection((host, int(number))) for _ in range(300)
    ]
    assert attack.still_serves()
    for each in silent:
        each.settimeout(curve_cloud.PATIENCE_S)
        while each.recv(100):
            pass
        each.close()
    # Honest clients of still_serves() stay until the cloud ends.
    assert wait_for_value(lambda: open_files() <= before + 40)
    assert attack.still_serves()


def test_one_key_has_no_more_connections_than_it_may_have(attack, caplog):
    assert attack.still_serves()
    before = attack.handshakes('admitted')
    many = [
        attack.socket(attack.listener.peer.rpc) for _ in range(3 * CONNECTIONS)
    ]
    refused = 2 * CONNECTIONS
    assert wait_for_value(
        lambda: attack.handshakes('refused_connections') >= refused
    )
    assert attack.handshakes('admitted') - before == CONNECTIONS
    assert wait_for_value(
        lambda: any(f'it has {CONNECTIONS} con' in m for m in caplog.messages)
    )
    assert attack.still_serves()
    for each in many:
        each.close()
    # They are given back: it may come again.
    again = attack.socket(attack.listener.peer.rpc)
    again.send(packed())
    assert wait_for_value(lambda: attack.endpoint.calls)


def test_a_flooding_peer_makes_no_further_connections_meanwhile(
    attack, caplog
):
    rpc = attack.listener.peer.rpc
    flooding = attack.socket(rpc)
    # More than may wait; each takes 0.4 s.
    for _ in range(1100):
        flooding.send(
            packed(kind=messages.CAST, message={'method': 'work', 'args': {}})
        )
    assert wait_for_value(lambda: attack.dropped('flood'))
    another = attack.socket(rpc)
    assert wait_for_value(lambda: attack.handshakes('refused_flood'))
    another.close()
    assert wait_for_value(
        lambda: any(
            'refused evil' in said and 'too many messages' in said
            for said in caplog.messages
        )
    )
    assert attack.still_serves()


GREETING = bytes.fromhex('ff00000000000000007f0300') + b'CURVE'.ljust(
    52, b'\0'
)


def test_a_stranger_whose_handshake_is_large_is_cut_off_soon(attack, caplog):
    host, _, number = attack.listener.peer.rpc[6:].rpartition(':')
    head = GREETING + b'\x06' + (2 * LIMIT - 1024).to_bytes(8, 'big')
    began_s = time.monotonic()
    with socket.create_connection((host, int(number))) as made:
        made.settimeout(curve_cloud.PATIENCE_S)
        made.sendall(head + bytes(LIMIT))
        with contextlib.suppress(ConnectionError):
            while made.recv(1000):
                pass
    # A handshake that is only slow has 10 s.
    assert time.monotonic() - began_s < 5
    assert wait_for_value(
        lambda: any('more than a handshake' in m for m in caplog.messages)
    )
    assert attack.still_serves()


def test_unread_answers_are_bounded(attack):
    attack.context.setsockopt(zmq.RCVHWM, 1)
    attack.context.setsockopt(zmq.RCVBUF, 4096)
    before = resident_bytes()
    question = packed(message={'method': 'much', 'args': {}})
    # However many connections one key has.
    readers = [attack.socket(attack.listener.peer.rpc) for _ in range(10)]
    # Whoever floods makes no further ones.
    assert wait_for_value(
        lambda: attack.handshakes('admitted') >= len(readers)
    )
    for number in range(5000):
        readers[number % 10].send(question)
    assert wait_for_value(lambda: attack.dropped('flood'))
    # What each connection has room for on its way, and a peer's part.
    assert wait_for_value(lambda: attack.endpoint.asked >= 4)
    asked = attack.endpoint.asked
    assert asked < 4000
    assert resident_bytes() - before < 70_000_000
    assert attack.still_serves()
    # Whoever reads is answered again.
    reader = readers[0]
    while reader.poll(1000):
        reader.recv()
    assert attack.endpoint.asked > asked


def test_a_peer_that_asks_without_end_delays_no_other(attack):
    evil = attack.socket(attack.listener.peer.rpc)
    question = packed(kind=messages.CAST, message={'method': 'work'})
    for _ in range(500):
        evil.send(question)
    assert wait_for_value(lambda: attack.endpoint.asked)
    began_s = time.monotonic()
    assert attack.still_serves()
    # All of it takes 50 s and more, by as many threads as it may have.
    assert time.monotonic() - began_s < 5
    assert attack.endpoint.asked < 200
