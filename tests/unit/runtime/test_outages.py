# SPDX-License-Identifier: Apache-2.0

"""A server that is away is told of once, and once when it is back."""

import logging
import threading

import pytest

from nova_fairness.runtime import outages


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def log(now, caplog):
    caplog.set_level(logging.INFO)
    return outages.OutageLog(lambda: now[0])


def test_retries_of_an_outage_are_not_logged_but_its_end(log, now, caplog):
    log.restored('database')
    for _ in range(5):
        log.lost('database', 'DBConnectionError')
        now[0] += 3.0
    log.restored('database')
    log.restored('database')
    assert caplog.messages == [
        'database: connection lost: DBConnectionError; it is tried again',
        'database: connection restored after 15 s',
    ]


def test_an_outage_of_each_server_is_logged(log, caplog):
    for server in ('placement', 'compute'):
        log.lost(server, 'it answers 503')
    log.restored('compute')
    log.lost('placement', 'ConnectFailure')
    assert len(caplog.messages) == 3
    assert caplog.messages[-1].startswith('compute: connection restored')


def test_a_second_outage_is_logged_again(log, caplog):
    for _ in range(2):
        log.lost('message broker', 'gone')
        log.restored('message broker')
    assert len(caplog.messages) == 4


def test_many_threads_log_one_outage_once(log, caplog):
    threads = [
        threading.Thread(target=log.lost, args=('database', 'away'))
        for _ in range(20)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(caplog.messages) == 1
