# SPDX-License-Identifier: Apache-2.0

"""What is unread, by a fake kernel."""

import pytest

from oslo_messaging_zmq.access import sessions
from oslo_messaging_zmq.access import unread

MOST = 1000
FRAME_BYTES = 100


class FakeFrame:
    """One that says by which connection it came."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def __len__(self):
        return FRAME_BYTES

    def get(self, option):
        assert option == '__fd'
        return str(self.descriptor)


class FakeKernel:
    """Connections by descriptor, and those that were shut."""

    def __init__(self):
        self.received = {}
        self.cookies = {}
        self.shut = []
        self.resident = 0
        self.unread = unread.AllConnections(
            MOST,
            look=self.look,
            shut=lambda *which: self.shut.append(which),
            resident=lambda: self.resident,
        )

    def look(self, descriptor):
        if descriptor not in self.received:
            return None
        cookie = self.cookies.get(descriptor, descriptor)
        received = self.received[descriptor]
        return sessions.ConnectionFacts(cookie, '::1', 1, 500, received)

    def opened(self, descriptor, who):
        self.received[descriptor] = 0
        self.unread.opened(descriptor, lambda: who)

    def took(self, descriptor, count=1):
        for _ in range(count):
            self.unread.took(FakeFrame(descriptor))


@pytest.fixture
def kernel():
    return FakeKernel()


def test_a_peer_that_has_sent_too_much_loses_all_connections(kernel):
    kernel.opened(3, 'evil')
    kernel.opened(4, 'evil')
    kernel.opened(5, 'good')
    kernel.received = {3: 600, 4: 600, 5: MOST}
    assert kernel.unread.end() == {'evil': 1200}
    assert kernel.shut == [(3, 3), (4, 4)]


def test_a_taken_message_is_not_unread(kernel):
    kernel.opened(3, 'good')
    kernel.took(3, 20)
    kernel.received[3] = 20 * (FRAME_BYTES + 35) + MOST
    assert kernel.unread.end() == {}


def test_small_frames_give_no_credit(kernel):
    kernel.opened(3, 'evil')
    kernel.took(3, 1000)
    kernel.received[3] = 1000 * (FRAME_BYTES + 35)
    assert kernel.unread.end() == {}
    kernel.received[3] += MOST + 1
    assert kernel.unread.end() == {'evil': MOST + 1}


def test_a_descriptor_of_another_connection_begins_at_zero(kernel):
    kernel.opened(3, 'first')
    kernel.took(3, 50)
    kernel.received[3], kernel.cookies[3] = 5 * MOST, 77
    assert kernel.unread.end() == {}, 'not the one that is known'
    kernel.received[3] = 0
    kernel.unread.opened(3, lambda: 'second')
    kernel.received[3] = MOST + 1
    assert kernel.unread.end() == {'second': MOST + 1}
    assert kernel.shut == [(3, 77)]


def test_a_descriptor_without_a_connection_is_not_noted(kernel):
    kernel.unread.opened(9, lambda: 'nobody')
    kernel.received[9] = 5 * MOST
    assert kernel.unread.end() == {}


def test_unread_bytes_are_checked_only_if_memory_has_grown(kernel):
    kernel.resident = MOST
    assert not kernel.unread.may_be_much()
    kernel.resident += 1
    assert kernel.unread.may_be_much()
    kernel.unread.end()
    assert not kernel.unread.may_be_much()


def test_a_connection_that_cannot_be_ended_now_is_tried_again(kernel):
    def no_descriptor(*which):
        raise OSError

    kernel.unread = unread.AllConnections(MOST, kernel.look, no_descriptor)
    kernel.opened(3, 'evil')
    kernel.received[3] = MOST + 1
    assert kernel.unread.end() == kernel.unread.end() == {'evil': MOST + 1}


def test_the_memory_of_this_process_is_readable():
    assert unread.resident_bytes() > 2**20
