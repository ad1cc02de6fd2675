# SPDX-License-Identifier: Apache-2.0

"""Messages of a peer beyond its part wait, and peers take turns."""

import pytest

from oslo_messaging_zmq.rpc import turns


class Scene:
    def __init__(self):
        self.wakes = 0
        self.turns = turns.MessageTurns(2, 3, 1000, self.wake)
        self.begun = {}

    def wake(self):
        self.wakes += 1

    def add(self, name, *messages, size=1):
        for message in messages:
            self.turns.add(name, message, size)

    def begin(self):
        """Messages that are handed over now."""
        made = []
        while found := self.turns.next():
            message, credit = found
            credit.take()
            self.begun[message] = credit
            made.append(message)
        return made


@pytest.fixture
def scene():
    return Scene()


def test_a_peer_has_its_part_in_work_and_the_rest_waits(scene):
    scene.add('loud', *'abcd')
    assert scene.begin() == ['a', 'b']
    scene.add('quiet', 'x')
    assert scene.begin() == ['x']
    assert scene.wakes == 0


def test_waiting_messages_go_on_when_half_of_the_part_is_back(scene):
    scene.add('loud', *'abcd')
    scene.begin()
    scene.begun['a'].served()
    assert scene.wakes == 1
    assert scene.begin() == ['c']


def test_peers_take_turns_each_in_its_order(scene):
    scene.add('one', *'ab')
    scene.add('two', *'xy')
    assert scene.begin() == ['a', 'x', 'b', 'y']


def test_waiting_messages_are_bounded_by_count_and_bytes(scene):
    scene.add('loud', *'abc')
    assert not scene.turns.has_room('loud', 1)
    assert scene.turns.has_room('other', 1)
    scene.add('large', 'x', size=900)
    assert scene.turns.has_room('large', 100)
    assert not scene.turns.has_room('large', 101)


def test_one_message_has_room_however_large_it_is(scene):
    assert scene.turns.has_room('large', 10**9)
    scene.add('large', 'x', size=10**9)
    assert scene.begin() == ['x']
    assert scene.turns.has_room('large', 10**9)


def test_no_waiting_peer_is_forgotten_if_all_was_served_meanwhile(scene):
    scene.add('loud', *'abc')
    scene.begin()
    for message in 'ab':
        scene.begun[message].served()
    scene.add('loud', 'd')
    assert scene.begin() == ['c', 'd']


def test_peers_that_were_not_heard_for_long_are_forgotten(scene, monkeypatch):
    monkeypatch.setattr(turns, '_MAX_PEERS', 10)
    for number in range(100):
        scene.add(number, number)
        assert scene.begin() == [number]
    assert len(scene.turns._peers) == 10
