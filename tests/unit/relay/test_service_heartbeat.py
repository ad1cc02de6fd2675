# SPDX-License-Identifier: Apache-2.0

import threading

import pytest

from nova_fairness import exception
from nova_fairness.relay import service_heartbeat


class FakeService:
    """Its number grows while it lives; the clock is its own."""

    def __init__(self):
        self.now_s = 100.0
        self.number = 5
        self.store_away = False

    def pulse(self):
        if self.store_away:
            raise exception.StoreAway('no database')
        return self.number


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def watching(service):
    return service_heartbeat.Lookout(
        service.pulse, 60.0, threading.Event(), lambda: service.now_s
    )


def test_a_service_with_a_heartbeat_is_available(service, watching):
    for _ in range(20):
        service.now_s += 30
        service.number += 1
        watching.look()
        assert not watching.is_away()


@pytest.mark.parametrize('store_away', [False, True])
def test_a_stopped_heartbeat_is_reported_once(
    service, watching, store_away, caplog
):
    watching.look()
    service.store_away = store_away
    for _ in range(6):
        service.now_s += 10
        watching.look()
        assert not watching.is_away()
    for _ in range(3):
        service.now_s += 10
        assert watching.is_away()
        watching.look()
    service.store_away = False
    service.number += 1
    watching.look()
    assert not watching.is_away()
    said = [each.message for each in caplog.records]
    assert said == [service_heartbeat.AWAY % 70, service_heartbeat.BACK]


def test_an_unchanged_heartbeat_number_is_no_sign_of_life(service, watching):
    service.store_away = True
    watching.look()
    service.now_s += 61
    service.store_away = False
    watching.look()
    assert watching.is_away()


def test_a_store_that_does_not_answer_delays_no_answer(service, watching):
    begun, ends = threading.Event(), threading.Event()

    def stuck():
        begun.set()
        ends.wait(30)
        return 0

    watching._pulse = stuck
    thread = threading.Thread(target=watching.look)
    thread.start()
    begun.wait(30)
    service.now_s += 61
    assert watching.is_away()
    ends.set()
    thread.join()
