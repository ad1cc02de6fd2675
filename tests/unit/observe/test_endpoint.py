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


def silent(served, count):
    """Connections that say nothing."""
    place = ('127.0.0.1', served.port)
    return [socket.create_connection(place, timeout=10) for _ in range(count)]


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(endpoint._QuietHandler, 'timeout', 1.0)
    made = endpoint.HttpEndpoint('127.0.0.1', 0, metrics.RoundCollector(dict))
    made.start()
    yield made
    made.stop()


def ask(served, method='GET', path='/metrics', body=None):
    connection = http.client.HTTPConnection(
        '127.0.0.1', served.port, timeout=10
    )
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_silent_clients_delay_no_other_and_are_left(served, capfd):
    waiting = silent(served, 50)
    try:
        status, body = ask(served)
        assert status == 200
        assert b'nova_fairness_process_open_fds' in body
        assert all(each.recv(1) == b'' for each in waiting)
        assert 'Traceback' not in capfd.readouterr().err
    finally:
        for each in waiting:
            each.close()


def test_more_connections_than_are_served_at_once_are_closed(served):
    threads = threading.active_count()
    waiting = silent(served, endpoint.MAX_CONNECTIONS + 50)
    try:
        assert waiting[-1].recv(1) == b''
        assert threading.active_count() <= threads + endpoint.MAX_CONNECTIONS
        assert all(each.recv(1) == b'' for each in waiting)
    finally:
        for each in waiting:
            each.close()
    # Those that were left are free for others.
    patience.wait_for_value(lambda: threading.active_count() <= threads)
    assert ask(served)[0] == 200


@pytest.mark.parametrize('path', ['/', '/metrics/..%2fstatus', '/etc/passwd'])
def test_there_is_nothing_but_metrics_and_status(served, path):
    assert ask(served, path=path) == (404, b'expected /metrics or /status\n')


def test_before_the_first_round_there_is_no_status(served):
    assert ask(served, path='/status')[0] == 503


def test_an_address_in_use_is_named(served):
    with pytest.raises(exception.ConfigurationError, match=str(served.port)):
        endpoint.HttpEndpoint(
            '127.0.0.1', served.port, metrics.RoundCollector(dict)
        )
