# SPDX-License-Identifier: Apache-2.0

"""Which connection is whose, without sockets: the kernel is a table here."""

import dataclasses
import socket

import pytest

from oslo_messaging_zmq.access import sessions

WAITING = 234
ADMITTED = 301


class Kernel:
    """Descriptors and what they mean."""

    def __init__(self):
        self.looks = {}
        self.ended = []
        self.exhausted = False
        self.cookies = 0
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def accept(self, descriptor, address='10.0.0.1', sent=WAITING):
        self.cookies += 1
        self.looks[descriptor] = sessions.ConnectionFacts(
            self.cookies, address, 5000 + self.cookies, sent
        )

    def sends(self, descriptor, sent=ADMITTED):
        self.looks[descriptor] = dataclasses.replace(
            self.looks[descriptor], sent=sent
        )

    def gets(self, descriptor, received):
        self.looks[descriptor] = dataclasses.replace(
            self.looks[descriptor], received=received
        )

    def look(self, descriptor):
        return self.looks.get(descriptor)

    def shut(self, descriptor, cookie):
        if self.exhausted:
            raise OSError(24, 'Too many open files')
        found = self.looks.get(descriptor)
        if found is None or found.cookie != cookie:
            return False
        self.ended.append(descriptor)
        return True


@pytest.fixture
def kernel():
    return Kernel()


@pytest.fixture
def table(kernel):
    made = sessions.Sessions(kernel.look, kernel.shut)
    made._clock = lambda: kernel.now
    made._sleep = kernel.sleep
    return made


def accept(kernel, table, *descriptors, **named):
    for descriptor in descriptors:
        kernel.accept(descriptor, **named)
        table.accepted(descriptor)


def good_but(*bad):
    return lambda key: key not in bad


def test_a_lone_connection_is_the_one_that_was_asked_about(kernel, table):
    accept(kernel, table, 5)
    assert table.admit('a', '10.0.0.1')
    accept(kernel, table, 6)
    assert table.admit('b', '10.0.0.1')
    assert [s.descriptor for s in table.withdraw(good_but('a'))] == [5]
    assert table.doubtful() == 0


def test_connections_of_other_addresses_are_not_meant(kernel, table):
    accept(kernel, table, 5, address='10.0.0.1')
    accept(kernel, table, 6, address='10.0.0.2')
    table.admit('b', '10.0.0.2')
    table.admit('a', '10.0.0.1')
    table.withdraw(good_but('b'))
    assert kernel.ended == [6]


def test_an_unknown_address_matches_all_connections(kernel, table):
    accept(kernel, table, 5, address='fe80::1%2')
    table.admit('a', 'fe80::1')
    table.withdraw(good_but('a'))
    assert kernel.ended == [5]


def test_the_connection_that_got_an_answer_is_identified(kernel, table):
    accept(kernel, table, 5, 6, 7)
    table.admit('b', '10.0.0.1')
    kernel.sends(6)
    table.admit('c', '10.0.0.1')
    kernel.sends(7)
    table.admit('a', '10.0.0.1')
    kernel.sends(5)
    table.withdraw(good_but('c'))
    assert kernel.ended == [7]
    table.withdraw(good_but('b'))
    assert kernel.ended == [7, 6]
    assert table.doubtful() == 0


def test_a_check_before_the_answer_is_out_causes_no_doubt(kernel, table):
    accept(kernel, table, 5, 6)
    table.admit('a', '10.0.0.1')
    assert table.withdraw(good_but()) == []
    kernel.sends(5)
    table.admit('b', '10.0.0.1')
    table.withdraw(good_but('b'))
    assert kernel.ended == [6]


@pytest.mark.parametrize('sent', [WAITING, None])
def test_all_possible_connections_of_a_revoked_key_are_closed(
    kernel, table, sent
):
    """The answer is never seen to go out, or the kernel is too old."""
    accept(kernel, table, 5, 6, sent=sent)
    accept(kernel, table, 7, address='10.0.0.2')
    table.admit('x', '10.0.0.2')
    table.admit('a', '10.0.0.1')
    table.withdraw(good_but('a'))
    assert kernel.ended == [5, 6]


def test_a_doubtful_connection_is_closed_for_later_keys_too(kernel, table):
    accept(kernel, table, 5, 6)
    table.admit('a', '10.0.0.1')
    table._no_wait_until = float('inf')
    table.admit('b', '10.0.0.1')
    assert table.doubtful() == 2
    table.withdraw(good_but('b'))
    assert kernel.ended == [5, 6]


def test_connections_before_their_handshake_are_left_alone(kernel, table):
    accept(kernel, table, 5)
    table.admit('a', '10.0.0.1')
    accept(kernel, table, 6, sent=64)
    table.withdraw(good_but('a'))
    assert kernel.ended == [5]


def test_an_unexplained_admission_is_doubtful(kernel, table):
    accept(kernel, table, 5)
    accept(kernel, table, 6)
    table.admit('a', '10.0.0.1')
    kernel.sends(5)
    kernel.sends(6)
    table.withdraw(good_but('a'))
    assert kernel.ended == [5, 6]


def test_no_peer_is_admitted_whose_connection_is_unknown(kernel, table):
    assert not table.admit('a', '10.0.0.1')


def test_a_number_that_means_something_else_is_left_alone(kernel, table):
    accept(kernel, table, 5)
    table.admit('a', '10.0.0.1')
    kernel.accept(5)
    assert table.withdraw(good_but('a')) == []
    assert kernel.ended == []


def test_a_reused_descriptor_is_a_new_connection(kernel, table):
    accept(kernel, table, 5)
    table.admit('a', '10.0.0.1')
    accept(kernel, table, 5)
    table.admit('b', '10.0.0.1')
    table.withdraw(good_but('a'))
    assert kernel.ended == []
    table.withdraw(good_but('b'))
    assert kernel.ended == [5]


def test_a_late_report_does_not_forget_the_next_connection(kernel, table):
    """Accepted, ended, accepted: all read only after the second accept."""
    kernel.accept(5)
    table.accepted(5)
    table.disconnected(5)
    table.accepted(5)
    table.admit('b', '10.0.0.1')
    table.withdraw(good_but())
    assert len(table) == 1
    table.withdraw(good_but('b'))
    assert kernel.ended == [5]


def test_a_connection_that_has_ended_is_forgotten(kernel, table):
    accept(kernel, table, 5, 6)
    table.admit('a', '10.0.0.1')
    table.disconnected(5)
    table.disconnected(6)
    assert len(table) == 2
    kernel.looks.clear()
    table.withdraw(good_but())
    assert len(table) == 0
    assert table._open == table._leaving == {}


def test_a_check_without_free_descriptors_is_repeated(kernel, table):
    accept(kernel, table, 5)
    table.admit('a', '10.0.0.1')
    kernel.exhausted = True
    assert table.withdraw(good_but('a')) == []
    kernel.exhausted = False
    assert [s.key for s in table.withdraw(good_but('a'))] == ['a']
    assert kernel.ended == [5]


def test_peers_that_leave_in_the_middle_hold_up_others_once(kernel, table):
    accept(kernel, table, *range(10, 40))
    for descriptor in range(10, 40):
        table.admit('a', '10.0.0.1')
        del kernel.looks[descriptor]
    assert kernel.now == pytest.approx(sessions._MAX_WAIT_S, abs=0.01)


def test_a_connection_that_sends_much_before_admission_is_ended(kernel, table):
    accept(kernel, table, 5, 6, 7, 8)
    kernel.gets(5, 10**6)
    kernel.gets(6, 800)
    kernel.gets(7, 10**6)
    kernel.sends(7)
    kernel.gets(8, 10**6)
    kernel.sends(8, None)
    assert table.has_open()
    assert [each.descriptor for each in table.end_greedy()] == [5]


def test_connections_are_closed_later_without_free_descriptors(kernel, table):
    accept(kernel, table, 5)
    kernel.gets(5, 10**6)
    kernel.exhausted = True
    assert table.end_greedy() == []
    kernel.exhausted = False
    assert [each.descriptor for each in table.end_greedy()] == [5]


def test_a_number_that_means_something_else_by_now_is_no_connection():
    one, other = socket.socketpair()
    with one, other:
        assert sessions.look(one.fileno()) is None


def test_a_key_has_room_again_when_its_connections_have_ended(kernel, table):
    for descriptor in (5, 6):
        assert table.has_room('a', 2)
        accept(kernel, table, descriptor)
        assert table.admit('a', '10.0.0.1')
    assert not table.has_room('a', 2)
    assert table.has_room('b', 2)
    del kernel.looks[5]
    table.disconnected(5)
    # Whoever is refused asks all the time: it is not looked at each time.
    assert not table.has_room('a', 2)
    kernel.now += 1
    assert table.has_room('a', 2)


def test_connections_that_may_be_of_a_key_count_as_well(kernel, table):
    accept(kernel, table, 5, 6, 7, 8)
    for _ in range(3):
        # None is seen to be answered, so nobody knows which was meant.
        assert table.has_room('a', 3)
        assert table.admit('a', '10.0.0.1')
        kernel.now += 1
    assert not table.has_room('a', 3)
    assert table.has_room('b', 3)
    for descriptor in (5, 6, 7, 8):
        del kernel.looks[descriptor]
        table.disconnected(descriptor)
    kernel.now += 1
    assert table.has_room('a', 3)


def test_an_admission_that_is_not_settled_yet_counts(kernel, table):
    accept(kernel, table, 5, 6)
    table.admit('a', '10.0.0.1')
    assert not table.has_room('a', 1)
