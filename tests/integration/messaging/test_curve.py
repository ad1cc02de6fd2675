# SPDX-License-Identifier: Apache-2.0

"""CURVE on real sockets: who gets in, who is put out, who is not disturbed."""

import contextlib
import logging
import socket as plain
import threading

import pytest
import zmq

from oslo_messaging_zmq import errors
from oslo_messaging_zmq.access import authenticator
from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files
from oslo_messaging_zmq.keys import keyring
from tests.fixtures import curve_cloud
from tests.fixtures.patience import wait_for_value

disconnections = curve_cloud.disconnections


@pytest.fixture
def context():
    with curve_cloud.context() as made:
        yield made


@pytest.fixture
def far_context():
    with curve_cloud.context() as made:
        yield made


@pytest.fixture
def cloud(tmp_path):
    return curve_cloud.Cloud(tmp_path)


@pytest.fixture
def server(cloud, context):
    made = curve_cloud.Server(context, cloud.node('server'))
    yield made
    made.close()


@pytest.fixture
def hasty_server(cloud, context):
    """A server whom a refused client may ask again soon."""
    made = curve_cloud.Server(
        context, cloud.node('hasty'), handshake_s=0.2, kept_out_s=0.5
    )
    yield made
    made.close()


def member(cloud, far_context, server, name='member'):
    keys = curve_cloud.ring(cloud.node(name))
    return keys, curve_cloud.client(far_context, keys, server)


def test_an_allowed_key_gets_in_and_its_messages_say_whose_they_are(
    cloud, far_context, server
):
    _, client = member(cloud, far_context, server)
    client.send(b'hello')
    frame = server.receive()
    assert frame.bytes == b'hello'
    assert server.access.peer(frame)['name'] == 'member'
    assert server.access.peer(frame)['role'] == 'node'
    assert server.count('admitted') == 1


def test_a_member_that_is_kept_out_keeps_its_connections_and_returns(
    cloud, far_context, hasty_server
):
    server = hasty_server
    keys, client = member(cloud, far_context, server)
    client.send(b'hello')
    assert server.receive().bytes == b'hello'

    def refused():
        server.access.keep_out('member')
        return server.count('refused_flood')

    refused()
    another = curve_cloud.client(far_context, keys, server)
    another.send(b'later')
    assert wait_for_value(refused)
    client.send(b'still here')
    assert server.receive().bytes == b'still here'
    assert server.receive().bytes == b'later'


def test_messages_that_wait_unread_end_their_connection(
    cloud, far_context, hasty_server
):
    server = hasty_server
    keys, client = member(cloud, far_context, server)
    lost = disconnections(client)
    frame = zmq.Frame(bytes(2**20))
    for _ in range(200):
        client.send(frame, copy=False)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    client.close(linger=0)
    again = curve_cloud.client(far_context, keys, server)
    again.send(b'sorry')
    while (found := server.receive().bytes) == frame.bytes:
        pass
    assert found == b'sorry'


def test_the_role_of_a_controller_arrives(cloud, far_context, server):
    keys = curve_cloud.ring(cloud.node('ctl', 'controller'))
    curve_cloud.client(far_context, keys, server).send(b'set')
    entry = server.access.peer(server.receive())
    assert entry == {'name': 'ctl', 'role': 'controller'}


def test_an_unknown_key_is_refused_counted_and_named(
    far_context, hasty_server, caplog
):
    stranger = curve_cloud.stranger()
    client = curve_cloud.client(far_context, stranger, hasty_server)
    client.send(b'let me in')
    assert wait_for_value(
        lambda: hasty_server.count('refused_unknown_key') >= 3
    )
    assert hasty_server.receive(0) is None
    assert hasty_server.count('admitted') == 0
    said = [r for r in caplog.messages if stranger.public in r]
    assert len(said) == 1, 'the same is said once a minute'
    assert 'not on the allow-list' in said[0]


def test_a_key_that_is_allowed_later_gets_in_without_a_restart(
    cloud, far_context, hasty_server
):
    stranger = curve_cloud.stranger()
    client = curve_cloud.client(far_context, stranger, hasty_server)
    client.send(b'hello')
    assert wait_for_value(lambda: hasty_server.count('refused_unknown_key'))
    admin.allow(cloud.operator, 'late', stranger.public, 'node')
    cloud.copy_list()
    assert hasty_server.receive().bytes == b'hello'


def test_a_revoked_key_cannot_connect(cloud, far_context, server):
    keys = curve_cloud.ring(cloud.node('member'))
    cloud.revoke('member')
    curve_cloud.client(far_context, keys, server).send(b'hello')
    assert wait_for_value(lambda: server.count('refused_revoked_key'))
    assert server.receive(0) is None


@pytest.mark.parametrize('silent', [True, False])
def test_the_live_session_of_a_revoked_key_is_closed(
    cloud, far_context, hasty_server, silent
):
    _, client = member(cloud, far_context, hasty_server)
    lost = disconnections(client)
    if not silent:
        client.send(b'hello')
        assert hasty_server.receive().bytes == b'hello'
    assert wait_for_value(lambda: hasty_server.count('admitted'))
    cloud.revoke('member')
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    client.send(b'I am still here')
    assert wait_for_value(lambda: hasty_server.count('refused_revoked_key'))
    assert hasty_server.receive(0) is None
    assert wait_for_value(lambda: hasty_server.count('sessions_closed') == 1)
    assert wait_for_value(lambda: not hasty_server.count('sessions'))


def test_other_sessions_are_not_disturbed_not_even_silent_ones(
    cloud, far_context, server
):
    clients = {}
    for name in ('a', 'b', 'c', 'd', 'e', 'f'):
        _, clients[name] = member(cloud, far_context, server, name)
    lost = {name: disconnections(each) for name, each in clients.items()}
    assert wait_for_value(lambda: server.count('admitted') == 6)
    cloud.revoke('c')
    assert lost['c'].poll(curve_cloud.PATIENCE_S * 1000)
    for name, each in clients.items():
        if name != 'c':
            each.send(name.encode())
            assert server.receive().bytes == name.encode()
            assert not lost[name].poll(0)
    assert wait_for_value(lambda: server.count('sessions_closed') == 1)


def test_many_simultaneous_handshakes_keep_their_own_identities(
    cloud, far_context, server
):
    rings = [curve_cloud.ring(cloud.node(f'n{k}')) for k in range(12)]
    clients = [
        curve_cloud.client(far_context, keys, server)
        for keys in rings
        for _ in range(3)
    ]
    lost = [disconnections(each) for each in clients]
    assert wait_for_value(lambda: server.count('admitted') == 36)
    for k in range(3):
        cloud.revoke(f'n{k}')
    assert wait_for_value(lambda: server.count('refused_revoked_key') >= 9)
    for k, each in enumerate(lost[9:], 9):
        clients[k].send(b'still here')
        assert server.receive().bytes == b'still here'
        assert not each.poll(0)
    assert wait_for_value(lambda: server.count('sessions_closed') == 9)
    assert server.count('sessions_doubtful') == 0


def test_a_message_that_waited_when_its_key_was_revoked_has_no_sender(
    cloud, far_context, server
):
    _, client = member(cloud, far_context, server)
    client.send(b'hello')
    frame = server.receive()
    cloud.revoke('member')
    assert server.access.peer(frame) is None


def test_a_rotation_cuts_no_peer_off(cloud, far_context, server):
    old_keys, client = member(cloud, far_context, server)
    lost = disconnections(client)
    client.send(b'1')
    assert server.receive().bytes == b'1'
    admin.rotate(cloud.operator, 'member')
    cloud.copy_list()
    client.send(b'2')
    assert server.receive().bytes == b'2'
    again = curve_cloud.client(far_context, old_keys, server)
    again.send(b'3: restarted before its secret arrived')
    assert server.receive().bytes.startswith(b'3')
    cloud.give_secret('member')
    new_keys = curve_cloud.ring(cloud.top / 'member')
    assert new_keys.public != old_keys.public
    new = curve_cloud.client(far_context, new_keys, server)
    new_lost = disconnections(new)
    new.send(b'4')
    frame = server.receive()
    assert server.access.peer(frame)['name'] == 'member'
    assert not lost.poll(0)
    cloud.revoke(old_keys.public)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    new.send(b'5')
    assert server.receive().bytes == b'5'
    assert not new_lost.poll(0)


def test_a_client_without_curve_is_refused_and_counted(
    far_context, server, caplog
):
    clients = []

    def refused():
        # Whoever sees first that it does not fit says so to itself only.
        client = far_context.socket(zmq.DEALER)
        client.linger = 0
        client.connect(server.endpoint)
        client.send(b'hello')
        clients.append(client)
        return server.count('refused_without_curve')

    assert wait_for_value(refused)
    assert server.receive(0) is None
    assert any('it does not speak CURVE' in m for m in caplog.messages)


def test_a_client_with_user_and_password_is_refused(far_context, server):
    clients = []

    def refused():
        client = far_context.socket(zmq.DEALER)
        client.linger = 0
        client.plain_username, client.plain_password = b'admin', b'admin'
        client.connect(server.endpoint)
        client.send(b'hello')
        clients.append(client)
        return server.count('refused_without_curve')

    assert wait_for_value(refused)
    assert server.receive(0) is None


def test_a_client_that_expects_another_server_key_sends_nothing(
    cloud, far_context, server
):
    keys = curve_cloud.ring(cloud.node('member'))
    other = curve_cloud.ring(cloud.node('other'))
    client = curve_cloud.client(
        far_context, keys, server, server_key=other.public
    )
    client.send(b'for other only')
    assert wait_for_value(lambda: server.count('refused_wrong_server_key'))
    assert server.receive(0) is None


def test_noise_on_the_port_leaves_nothing_behind(cloud, far_context, server):
    address = ('127.0.0.1', int(server.endpoint.rpartition(':')[2]))
    for noise in (b'', b'GET / HTTP/1.0\r\n\r\n', b'\xff' * 64, b'\0' * 999):
        with plain.create_connection(address) as connection:
            connection.sendall(noise)
    _, client = member(cloud, far_context, server)
    client.send(b'hello')
    assert server.receive().bytes == b'hello'
    assert wait_for_value(lambda: server.count('sessions') == 1)


def test_connections_in_handshake_do_not_hide_a_session(
    cloud, far_context, server
):
    address = ('127.0.0.1', int(server.endpoint.rpartition(':')[2]))
    idle = [plain.create_connection(address) for _ in range(5)]
    _, client = member(cloud, far_context, server)
    lost = disconnections(client)
    assert wait_for_value(lambda: server.count('admitted') == 1)
    idle += [plain.create_connection(address) for _ in range(5)]
    cloud.revoke('member')
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    assert wait_for_value(lambda: server.count('sessions_closed') == 1)
    for each in idle:
        each.close()


def test_a_user_id_cannot_be_forged(cloud, far_context, server):
    controller = curve_cloud.ring(cloud.node('ctl', 'controller'))
    keys = curve_cloud.ring(cloud.node('member'))
    client = curve_cloud.client(
        far_context, keys, server, routing_id=controller.public.encode()
    )
    client.send_multipart([b'User-Id', controller.public.encode(), b'set'])
    frame = server.receive()
    assert frame.bytes == b'set'
    assert frame.get('User-Id') == keys.public
    assert server.access.peer(frame)['role'] == 'node'


def test_no_client_is_admitted_without_an_answer_of_the_authenticator(
    cloud, context, far_context
):
    keys = curve_cloud.ring(cloud.node('member'))
    server = curve_cloud.Server(context, cloud.node('server'))
    server.access.stop()
    curve_cloud.client(far_context, keys, server).send(b'hello')
    assert server.receive(0.5) is None
    assert server.count('admitted') == 0
    server.close()


def test_without_an_authenticator_no_peer_gets_in(cloud, context, far_context):
    keys = curve_cloud.ring(cloud.node('member'))
    listener = context.socket(zmq.ROUTER)
    keyring.as_server(listener, keys, 'lonely')
    port = listener.bind_to_random_port('tcp://127.0.0.1')
    client = far_context.socket(zmq.DEALER)
    client.linger = 0
    keyring.as_client(client, keys, keys.public, keys.name)
    client.connect(f'tcp://127.0.0.1:{port}')
    client.send(b'hello')
    assert not listener.poll(500)


def test_a_broken_allow_list_leaves_the_last_good_one(
    cloud, far_context, server, caplog
):
    caplog.set_level(logging.INFO)
    _, client = member(cloud, far_context, server)
    assert wait_for_value(lambda: server.count('admitted'))
    path = cloud.top / 'server' / files.LIST_NAME
    good = path.read_text()
    path.write_text(good[:-20])
    assert wait_for_value(lambda: server.keys.entry('') or server.keys.problem)
    assert 'last good' in caplog.text
    client.send(b'hello')
    assert server.receive().bytes == b'hello'
    path.write_text(good)
    assert wait_for_value(
        lambda: server.keys.entry('') or not server.keys.problem
    )


@pytest.fixture
def servers(cloud):
    with contextlib.ExitStack() as ending:
        made = []
        for k in range(3):
            context = ending.enter_context(curve_cloud.context())
            made.append(curve_cloud.Server(context, cloud.node(f's{k}')))
            ending.callback(made[-1].close)
        yield made


def test_one_sender_talks_to_servers_with_different_keys(
    cloud, far_context, servers
):
    keys = curve_cloud.ring(cloud.node('member'))
    access = authenticator.Authenticator(far_context, keys, 'sender')
    sender = far_context.socket(zmq.ROUTER)
    sender.linger = 0
    sender.router_mandatory = True
    for k, server in enumerate(servers):
        access.as_client(sender, server.keys.public, server.keys.name)
        sender.setsockopt(zmq.CONNECT_ROUTING_ID, b's%d' % k)
        sender.connect(server.endpoint)
    for k, server in enumerate(servers):
        sender.send_multipart([b's%d' % k, b'to %d' % k])
        assert server.receive().bytes == b'to %d' % k
    # A lost connection is made again with its own key, not the last one.
    lost = disconnections(sender)
    server = servers[0]
    (guarded,) = server.access._guarded.values()
    (found,) = guarded.sessions._sessions.values()
    assert guarded.sessions._shut(found.descriptor, found.cookie)
    assert lost.poll(curve_cloud.PATIENCE_S * 1000)
    sender.send_multipart([b's0', b'again'])
    assert server.receive().bytes == b'again'
    sender.close()
    access.stop()


def test_a_client_disconnects_from_a_revoked_server(
    cloud, far_context, server
):
    keys = curve_cloud.ring(cloud.node('member'))
    access = authenticator.Authenticator(
        far_context, keys, 'sender', check_interval_s=0.05
    )
    sender = far_context.socket(zmq.DEALER)
    sender.linger = 0
    access.as_client(sender, server.keys.public, server.keys.name)
    sender.connect(server.endpoint)
    withdrawn = []
    access.on_withdrawn(withdrawn.append)
    sender.send(b'hello')
    assert server.receive().bytes == b'hello'
    # Only the member hears of it: the server would let it in for ever.
    admin.revoke(cloud.operator, 'server')
    cloud.nodes = [cloud.top / 'member']
    cloud.copy_list()
    assert wait_for_value(lambda: withdrawn)
    sender.disconnect(server.endpoint)
    assert withdrawn == [server.keys.public]
    with pytest.raises(errors.KeyRefused, match='server was revoked'):
        access.as_client(sender, server.keys.public, server.keys.name)
    # ZeroMQ disconnects when the socket is used next.
    assert wait_for_value(
        lambda: not sender.poll(0) and server.count('sessions') == 0
    )
    sender.close()
    access.stop()


def test_an_unknown_server_is_never_connected_to(cloud, far_context):
    keys = curve_cloud.ring(cloud.node('member'))
    access = authenticator.Authenticator(far_context, keys, 'sender')
    sender = far_context.socket(zmq.DEALER)
    for key in (curve_cloud.stranger().public, 'nonsense'):
        with pytest.raises(errors.KeyRefused, match='not on the allow'):
            access.as_client(sender, key, 'server')
    with pytest.raises(errors.KeyRefused, match='it has no key'):
        access.as_client(sender, '', 'server')
    sender.close()
    access.stop()


def test_drivers_of_one_process_keep_their_own_lists(
    tmp_path, context, far_context
):
    first_cloud = curve_cloud.Cloud(tmp_path / 'first')
    second_cloud = curve_cloud.Cloud(tmp_path / 'second')
    with curve_cloud.context() as other:
        first = curve_cloud.Server(context, first_cloud.node('server'))
        second = curve_cloud.Server(other, second_cloud.node('server'))
        keys = curve_cloud.ring(first_cloud.node('member'))
        curve_cloud.client(far_context, keys, second).send(b'wrong')
        curve_cloud.client(far_context, keys, first).send(b'right')
        assert first.receive().bytes == b'right'
        assert wait_for_value(lambda: second.count('refused_unknown_key'))
        assert second.receive(0) is None
        first.close()
        keys = curve_cloud.ring(second_cloud.node('member'))
        curve_cloud.client(far_context, keys, second).send(b'right')
        assert second.receive().bytes == b'right'
        second.close()


def overheard(port, listening, said):
    """Pass one connection on to a port; keep what its client says."""
    client, _ = listening.accept()
    with client, plain.create_connection(('127.0.0.1', port)) as server:

        def back():
            while part := server.recv(65536):
                client.sendall(part)

        answering = threading.Thread(target=back, daemon=True)
        answering.start()
        while part := client.recv(65536):
            said.append(part)
            server.sendall(part)
        server.shutdown(plain.SHUT_RDWR)
        answering.join()


def test_an_overheard_connection_that_is_sent_again_is_not_taken(
    cloud, far_context, server
):
    port = int(server.endpoint.rpartition(':')[2])
    said = []
    with plain.create_server(('127.0.0.1', 0)) as listening:
        listener = threading.Thread(
            target=overheard, args=(port, listening, said)
        )
        listener.start()
        keys = curve_cloud.ring(cloud.node('member'))
        client = far_context.socket(zmq.DEALER)
        client.linger = 0
        client.curve_publickey = keys.public.encode()
        client.curve_secretkey = keys.secret
        client.curve_serverkey = server.keys.public.encode()
        client.connect(f'tcp://127.0.0.1:{listening.getsockname()[1]}')
        client.send(b'pause')
        assert server.receive().bytes == b'pause'
        client.close()
        listener.join()
    assert b'pause' not in b''.join(said)
    with plain.create_connection(('127.0.0.1', port)) as again:
        again.settimeout(curve_cloud.PATIENCE_S)
        for part in said:
            again.sendall(part)
        while again.recv(65536):  # until the server ends the connection
            pass
    assert server.receive(0) is None
    assert server.count('admitted') == 1
