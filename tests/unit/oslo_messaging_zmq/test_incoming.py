# SPDX-License-Identifier: Apache-2.0

"""Messages in work: counted once, whatever becomes of them."""

import gc

import oslo_messaging
import pytest

from oslo_messaging_zmq import wire
from oslo_messaging_zmq.rpc import delivery
from oslo_messaging_zmq.rpc import incoming


class Scene:
    def __init__(self, limit=4):
        self.wakes = 0
        self.answers = []
        self.credit = incoming.Credit(limit, self.wake)

    def wake(self):
        self.wakes += 1

    def message(self, kind=wire.CALL):
        request = wire.Request(kind, 'id', 'x', 't', 's', None, {}, {'m': 1})
        return incoming.Incoming(
            request,
            b'sender',
            self.credit,
            lambda to, answer: self.answers.append((to, answer)),
        )


@pytest.fixture
def scene():
    return Scene()


def test_a_message_is_in_work_until_it_is_answered(scene):
    message = scene.message()
    assert scene.credit.left() == 3
    message.reply(5)
    assert scene.credit.left() == 4
    assert scene.answers == [
        (b'sender', wire.Answer(wire.REPLY, 'id', 5, None))
    ]
    message.reply(6)
    del message
    gc.collect()
    assert scene.credit.left() == 4
    assert len(scene.answers) == 1


def test_a_message_that_nobody_keeps_is_in_work_no_more(scene):
    scene.message()
    gc.collect()
    assert scene.credit.left() == 4
    assert scene.answers == []


def test_casts_and_fanouts_are_never_answered(scene):
    for kind in (wire.CAST, wire.FANOUT):
        message = scene.message(kind)
        message.acknowledge()
        message.requeue()
        message.reply(1)
        message.refuse()
    assert scene.answers == []
    assert scene.credit.left() == 4


def test_heartbeats_are_sent_until_the_answer(scene):
    message = scene.message()
    message.heartbeat()
    assert scene.answers[0][1].kind == wire.HEARTBEAT
    message.reply(1)
    with pytest.raises(oslo_messaging.MessageDeliveryFailure):
        message.heartbeat()


def test_a_failure_travels_as_text(scene):
    error = ValueError('wrong')
    scene.message().reply(failure=(ValueError, error, None))
    assert '"wrong"' in scene.answers[0][1].failure


def test_somebody_who_waits_is_woken_when_half_came_back(scene):
    messages = [scene.message() for _ in range(4)]
    messages.pop().reply()
    assert scene.wakes == 0
    scene.credit.is_awaited = True
    messages.pop().reply()
    assert scene.wakes == 1


def test_an_answer_that_does_not_fit_becomes_a_failure():
    answer = wire.Answer(wire.REPLY, 'id', 'x' * 2000)
    got = wire.decode_answer(incoming.encoded(answer, 1500), 1500)
    assert 'max_message_size' in got.failure


def test_a_stopped_delivery_sends_calls_back(scene):
    taken = []
    made = delivery.start(taken.extend, 10)
    made.put([scene.message()])
    assert len(taken) == 1
    made.stop()
    made.put([scene.message()])
    assert len(taken) == 1
    assert scene.answers[-1][1].kind == wire.REFUSED


def test_a_callback_that_fails_harms_nobody(scene, caplog):
    def fail(batch):
        raise RuntimeError('no room')

    delivery.start(fail, 10).put([scene.message()])
    assert 'no room' in caplog.text
