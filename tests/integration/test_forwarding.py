# SPDX-License-Identifier: Apache-2.0

"""Ports of the machine lead into a cloud, whose network is this one here."""

import socket
import threading

import pytest

from tests.fixtures import ports
from tests.fixtures.nova_cloud import forwarding

MUCH = b'ask' * 1_000_000


class FakeController:
    """Its network is that of the machine."""

    def connect(self, port):
        return socket.create_connection((forwarding.LOOPBACK, port), 60)


def read(connection):
    """All that is said until the other side has ended."""
    return b''.join(iter(lambda: connection.recv(65536), b''))


@pytest.fixture
def echo():
    """The port of a server that says what it has heard, once that is all."""
    with socket.create_server((forwarding.LOOPBACK, 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.sendall(read(connection)[::-1])

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def said_through(port, words):
    """What is answered at a port."""
    place = forwarding.LOOPBACK, port
    with socket.create_connection(place, 60) as connection:
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        return read(connection)


def test_forwarding_passes_all_bytes_in_both_directions(echo):
    with forwarding.forwarded(FakeController(), echo) as port:
        assert said_through(port, MUCH) == MUCH[::-1]
    with pytest.raises(ConnectionRefusedError):
        said_through(port, b'')


def test_a_port_without_a_listener_ends_the_connection():
    with forwarding.forwarded(FakeController(), ports.free()) as port:
        assert said_through(port, b'') == b''
