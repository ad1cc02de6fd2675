# SPDX-License-Identifier: Apache-2.0

"""Who reaches the port can read, and nothing else."""

import http.client
import socket
import threading

import pytest

from nova_fairness import exception
from nova_fairness.observe import endpoint
from nova_fairness.observe import metrics
from tests.fixtures import patience


def silent(running_endpoint, count):
    """Connections that say nothing."""
    place = ('127.0.0.1', running_endpoint.port)
    return [socket.create_connection(place, timeout=10) for _ in range(count)]


@pytest.fixture
def running_endpoint(monkeypatch):
    monkeypatch.setattr(endpoint._QuietHandler, 'timeout', 1.0)
    made = endpoint.HttpEndpoint('127.0.0.1', 0, metrics.RoundCollector(dict))
    made.start()
    yield made
    made.stop()


def ask(running_endpoint, method='GET', path='/metrics', body=None):
    connection = http.client.HTTPConnection(
        '127.0.0.1', running_endpoint.port, timeout=10
    )
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_silent_clients_delay_no_other_and_are_left(running_endpoint, capfd):
    waiting = silent(running_endpoint, 50)
    try:
        status, body = ask(running_endpoint)
        assert status == 200
        assert b'nova_fairness_process_open_fds' in body
        assert all(each.recv(1) == b'' for each in waiting)
        assert 'Traceback' not in capfd.readouterr().err
    finally:
        for each in waiting:
            each.close()


def test_more_connections_than_are_served_at_once_are_closed(running_endpoint):
    threads = threading.active_count()
    waiting = silent(running_endpoint, endpoint.MAX_CONNECTIONS + 50)
    try:
        assert waiting[-1].recv(1) == b''
        assert threading.active_count() <= threads + endpoint.MAX_CONNECTIONS
        assert all(each.recv(1) == b'' for each in waiting)
    finally:
        for each in waiting:
            each.close()
    # Those that were left are free for others.
    patience.wait_for_value(lambda: threading.active_count() <= threads)
    assert ask(running_endpoint)[0] == 200


@pytest.mark.parametrize('path', ['/', '/metrics/..%2fstatus', '/etc/passwd'])
def test_there_is_nothing_but_metrics_and_status(running_endpoint, path):
    assert ask(running_endpoint, path=path) == (
        404,
        b'expected /metrics or /status\n',
    )


def test_before_the_first_round_there_is_no_status(running_endpoint):
    assert ask(running_endpoint, path='/status')[0] == 503


def test_an_address_in_use_is_named(running_endpoint):
    with pytest.raises(
        exception.ConfigurationError, match=str(running_endpoint.port)
    ):
        endpoint.HttpEndpoint(
            '127.0.0.1', running_endpoint.port, metrics.RoundCollector(dict)
        )
