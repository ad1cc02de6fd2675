# SPDX-License-Identifier: Apache-2.0

"""Storms and blocked endpoints: who waits for whom, and for how much."""

import collections
import threading

from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


class Gate:
    """Holds every fanout message up until it is opened."""

    def __init__(self):
        self.open = threading.Event()
        self.began = 0
        self.got = []

    def hold(self, ctxt, value):
        self.began += 1
        self.open.wait(zmq_cloud.PATIENCE_S)
        self.got.append(value)

    def seen(self, ctxt):
        return self.began


def test_a_call_is_served_while_all_fanouts_are_blocked(cloud):
    gate = Gate()
    limits = {'fanouts_in_work': 4, 'fanout_queue_length': 10}
    listening = cloud.transport(**limits)
    cloud.serve('t', 's', gate, listening)
    transport = cloud.transport(**limits)
    client = cloud.client('t', transport)
    storm = cloud.client('t', transport, fanout=True)
    assert client.call({}, 'seen') == 0
    for value in range(1000):
        storm.cast({}, 'hold', value=value)
    wait_for_value(lambda: gate.began == 4)
    # No more than four are in work, however many came, so it is our turn.
    assert client.call({}, 'seen') == 4
    assert zmq_cloud.statistics(listening)['fanouts_in_work'] == 4
    gate.open.set()
    wait_for_value(lambda: len(gate.got) >= 14)
    assert client.call({}, 'seen') <= 1000


def test_blocked_fanouts_within_the_limit_are_all_served_later(cloud):
    gate = Gate()
    cloud.serve('t', 's', gate, cloud.transport(fanouts_in_work=1))
    storm = cloud.client('t', fanout=True)
    for value in range(100):
        storm.cast({}, 'hold', value=value)
    gate.open.set()
    wait_for_value(lambda: len(gate.got) == 100)
    assert gate.got == sorted(gate.got)


def test_requests_above_the_concurrency_limit_wait_and_are_served(cloud):
    gate = Gate()
    listening = cloud.transport(requests_in_work=3)
    cloud.serve('t', 's', gate, listening)
    client = cloud.client('t')
    for value in range(50):
        client.cast({}, 'hold', value=value)
    wait_for_value(lambda: gate.began == 3)
    assert zmq_cloud.statistics(listening)['requests_in_work'] == 3
    gate.open.set()
    wait_for_value(lambda: sorted(gate.got) == list(range(50)))


class Counting:
    """Counts what arrives, by who sent it."""

    def __init__(self):
        self.counts = collections.Counter()

    def note(self, ctxt, sender):
        self.counts[sender] += 1


def dropped(listening):
    return zmq_cloud.statistics(listening).get('received_dropped_flood', 0)


def test_a_flooding_peer_is_limited_and_others_are_served(cloud, caplog):
    got = Counting()
    listening = cloud.transport(request_rate=20.0, fanout_queue_length=10_000)
    cloud.serve('t', 's', got, listening)
    quiet = cloud.client('t', fanout=True)
    sending = cloud.transport(fanout_queue_length=10_000)
    flooding = cloud.client('t', sending, fanout=True)
    for _ in range(200):
        flooding.cast({}, 'note', sender='flood')
    for _ in range(5):
        quiet.cast({}, 'note', sender='quiet')
    wait_for_value(lambda: got.counts['quiet'] == 5)
    wait_for_value(lambda: dropped(listening) + got.counts['flood'] == 200)
    assert 10 <= got.counts['flood'] < 100
    assert wait_for_value(
        lambda: any('it sends too many' in text for text in caplog.messages)
    )


def test_a_flood_of_casts_is_cut_short(cloud):
    got = Counting()
    listening = cloud.transport(request_rate=1.0)
    cloud.serve('t', 's', got, listening)
    client = cloud.client('t')
    for _ in range(100):
        client.cast({}, 'note', sender='flood')
    wait_for_value(lambda: dropped(listening) + got.counts['flood'] == 100)
    assert 10 <= got.counts['flood'] < 50
