# SPDX-License-Identifier: Apache-2.0

"""What a port takes of a peer, and messages in work: counted once."""

import gc

import oslo_messaging
import pytest

from oslo_messaging_zmq import messages
from oslo_messaging_zmq.rpc import port
from oslo_messaging_zmq.rpc import turns


class Scene:
    def __init__(self, limit=4):
        self.wakes = 0
        self.answers = []
        self.credit = turns.Credit(limit, self.wake)
        self.part = turns.Credit(limit, self.wake)
        self.left = []

    def wake(self):
        self.wakes += 1

    def message(self, kind=messages.CALL):
        request = messages.RequestMessage(
            kind, 'id', 'x', 't', 's', None, {}, {'m': 1}
        )
        made = port.IncomingMessage(request, b'sender', 'n1', 100, self.answer)
        made.begin(self.credit, self.part)
        return made

    def answer(self, receiver, answer, left=lambda: None):
        self.answers.append((receiver, answer))
        self.left.append(left)


@pytest.fixture
def scene():
    return Scene()


def test_a_message_is_in_work_until_it_is_answered(scene):
    message = scene.message()
    assert scene.credit.left() == 3
    message.reply(5)
    assert scene.credit.left() == 4
    assert scene.answers == [
        (
            b'sender',
            messages.Answer(messages.REPLY, 'id', 5, None),
        )
    ]
    message.reply(6)
    del message
    gc.collect()
    assert scene.credit.left() == 4
    assert len(scene.answers) == 1


def test_a_dropped_message_is_no_longer_in_work(scene):
    scene.message()
    gc.collect()
    assert scene.credit.left() == 4
    assert scene.answers == []


def test_casts_and_fanouts_are_never_answered(scene):
    for kind in (messages.CAST, messages.FANOUT):
        message = scene.message(kind)
        message.acknowledge()
        message.requeue()
        message.reply(1)
        message.refuse()
    assert scene.answers == []
    assert scene.credit.left() == 4


def test_a_message_counts_as_in_work_until_its_answer_was_sent(scene):
    message = scene.message()
    message.reply(5)
    assert (scene.credit.left(), scene.part.left()) == (4, 3)
    scene.left[0]()
    del message
    gc.collect()
    assert (scene.credit.left(), scene.part.left()) == (4, 4)


def test_heartbeats_are_sent_until_the_answer(scene):
    message = scene.message()
    message.heartbeat()
    assert scene.answers[0][1].kind == messages.HEARTBEAT
    message.reply(1)
    with pytest.raises(oslo_messaging.MessageDeliveryFailure):
        message.heartbeat()


def test_a_failure_travels_as_text(scene):
    error = ValueError('wrong')
    scene.message().reply(failure=(ValueError, error, None))
    assert '"wrong"' in scene.answers[0][1].failure


def test_a_waiting_thread_is_woken_when_half_of_the_credit_is_back(scene):
    taken = [scene.message() for _ in range(4)]
    taken.pop().reply()
    assert scene.wakes == 0
    scene.credit.is_awaited = True
    taken.pop().reply()
    assert scene.wakes == 1


def test_an_answer_that_does_not_fit_becomes_a_failure():
    answer = messages.Answer(messages.REPLY, 'id', 'x' * 2000)
    got = messages.decode_answer(port.encode_or_failure(answer, 1500), 1500)
    assert 'max_message_size' in got.failure


class FakeClock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return FakeClock()


def admitted(made, peer, count, size=100):
    return sum(made.admits(peer, size) for _ in range(count))


def test_a_burst_is_taken_and_then_the_rate(clock):
    made = port.Limiter(5.0, clock)
    assert admitted(made, 'n1', 1000) == 50
    clock.now_s += 1.0
    assert admitted(made, 'n1', 1000) == 5
    clock.now_s += 1e6
    assert admitted(made, 'n1', 1000) == 50


def test_a_peer_that_keeps_to_the_rate_is_never_refused(clock):
    made = port.Limiter(5.0, clock)
    for _ in range(1000):
        assert made.admits('n1', 100)
        clock.now_s += 0.2


def test_one_peer_does_not_use_up_the_limit_of_another(clock):
    made = port.Limiter(5.0, clock)
    admitted(made, 'n1', 1000)
    assert admitted(made, b'p1', 1000) == 50


def test_large_messages_count_more(clock):
    made = port.Limiter(1.0, clock)
    assert admitted(made, 'n1', 1000, size=5 * 64 * 1024) == 1
    assert admitted(made, 'n1', 1000) == 4


def test_one_message_above_all_bounds_is_taken_of_a_quiet_peer(clock):
    made = port.Limiter(0.01, clock)
    assert admitted(made, 'n1', 3, size=8 * 2**20) == 1
    clock.now_s += 100.0
    assert admitted(made, 'n1', 3, size=8 * 2**20) == 1


def test_an_unset_rate_means_no_bound(clock):
    made = port.Limiter(0.0, clock)
    assert admitted(made, 'n1', 1000) == 1000
    assert len(made) == 0


def test_many_names_do_not_fill_the_memory(clock):
    made = port.Limiter(1.0, clock)
    admitted(made, 'n1', 10)
    for number in range(10_000):
        made.admits(f'invented {number}', 1)
    assert len(made) == 10_000
    assert made.admits('n1', 1)
