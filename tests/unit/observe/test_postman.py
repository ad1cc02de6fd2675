# SPDX-License-Identifier: Apache-2.0

"""Notifications are sent beside what happens, or dropped and counted."""

import threading

import pytest

from nova_fairness.observe import notices
from nova_fairness.observe import postman

ENOUGH_S = 60  # for broken code only


def some(count):
    return [notices.Notice(f'e{n}', 'info', {}) for n in range(count)]


class FakeBroker:
    """Takes what it is given when it is let."""

    def __init__(self):
        self.got = []
        self.open = threading.Event()
        self.asked = threading.Event()
        self.fails = set()

    def send(self, item):
        self.asked.set()
        assert self.open.wait(ENOUGH_S)
        if item.event in self.fails:
            raise OSError(111, 'Connection refused')
        self.got.append(item.event)


@pytest.fixture
def broker():
    made = FakeBroker()
    yield made
    made.open.set()


def test_what_is_posted_is_sent_in_order(broker):
    broker.open.set()
    made = postman.Postman(broker.send, 10)
    made.start()
    made.post(some(5))
    made.stop(ENOUGH_S)
    assert broker.got == ['e0', 'e1', 'e2', 'e3', 'e4']
    assert made.statistics() == {'sent': 5, 'dropped': 0}


def test_a_broker_that_does_not_answer_costs_only_what_is_too_many(
    broker, caplog
):
    made = postman.Postman(broker.send, 3)
    made.start()
    made.post(some(1))
    assert broker.asked.wait(ENOUGH_S)
    made.post(some(5))
    made.post(some(1))
    assert made.statistics() == {'sent': 0, 'dropped': 3}
    assert caplog.text.count('Notifications are dropped') == 1
    # There is no room for the end either; it is not waited for.
    made.stop(ENOUGH_S)
    broker.open.set()


def test_one_that_cannot_be_sent_keeps_no_other(broker, caplog):
    broker.open.set()
    broker.fails = {'e1'}
    made = postman.Postman(broker.send, 10)
    made.start()
    made.post(some(3))
    made.stop(ENOUGH_S)
    assert broker.got == ['e0', 'e2']
    assert made.statistics() == {'sent': 2, 'dropped': 1}
    assert 'e1 was not sent' in caplog.text


def test_an_end_before_the_start_is_one(broker):
    postman.Postman(broker.send, 1).stop(ENOUGH_S)
    assert broker.got == []
