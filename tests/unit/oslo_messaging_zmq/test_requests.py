# SPDX-License-Identifier: Apache-2.0

"""Which listener is chosen, and how long somebody is waited for."""

import itertools
import time

import pytest

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.rpc import requests
from tests.fixtures import fake_matchmaker


class FakeConnections:
    """Connections whose state a test says."""

    is_closed = False

    def __init__(self, **up):
        self.up = up
        self.settled = []

    def is_up(self, peer):
        return self.up.get(peer.id)

    def settle(self, peers):
        self.settled.append([peer.id for peer in peers])
        for peer in peers:
            self.up.setdefault(peer.id, True)


def peer(peer_id, server='s'):
    where = f'tcp://h:{peer_id}'
    return contract.AnnouncedListener(
        peer_id, 'x', 't', server, 'h', where, where
    )


@pytest.fixture
def matches():
    return fake_matchmaker.FakeMatchmaker()


def chooser(matches, *peers, **up):
    for each in peers:
        matches.register(each)
    connections = FakeConnections(**up)
    return requests.Chooser(matches, connections), connections


def chosen(made, count, server='', avoid=()):
    return [
        found.id if (found := made.choose(('x', 't', server), avoid)) else None
        for _ in range(count)
    ]


def is_strict_turn(got, members):
    expected = itertools.cycle(members)
    while next(expected) != got[0]:
        pass
    return all(each == next(expected) for each in got[1:])


def test_a_group_takes_turns_in_the_order_of_ids(matches):
    made, connections = chooser(matches, peer('b'), peer('a'), peer('c'))
    got = chosen(made, 7)
    assert is_strict_turn(got, 'abc')
    assert connections.settled == [['a', 'b', 'c']]


def test_members_that_are_down_are_passed_over_while_others_are_up(matches):
    made, connections = chooser(
        matches, peer('a'), peer('b'), peer('c'), b=False
    )
    assert is_strict_turn(chosen(made, 5), 'ac')
    connections.up['b'] = True
    assert is_strict_turn(chosen(made, 6), 'abc')


def test_if_all_members_are_down_they_are_looked_up_again(matches):
    made, connections = chooser(matches, peer('a'), a=False)
    before = matches.look_ups
    assert chosen(made, 1) == [None]
    assert matches.look_ups > before
    connections.up['a'] = True
    assert chosen(made, 1) == ['a']


def test_a_server_is_its_newest_record(matches):
    made, connections = chooser(
        matches, peer('z', 'old'), peer('y', 's'), peer('b', 's')
    )
    assert chosen(made, 3, 's') == ['b', 'b', 'b']
    connections.up['b'] = False
    assert chosen(made, 2, 's') == ['y', 'y']
    assert chosen(made, 1, 'nobody') == [None]


def test_a_listener_that_refused_is_avoided(matches):
    made, _ = chooser(matches, peer('a'), peer('b'))
    assert chosen(made, 3, avoid={'a'}) == ['b', 'b', 'b']
    assert chosen(made, 1, avoid={'a', 'b'}) == [None]


def test_waiting_ends_with_the_deadline_or_with_a_listener(matches):
    made, _ = chooser(matches)
    assert made.wait(('x', 't', ''), time.monotonic() + 0.05) is None
    assert matches.look_ups >= 2
    matches.register(peer('a'))
    assert made.wait(('x', 't', ''), time.monotonic() + 60).id == 'a'
