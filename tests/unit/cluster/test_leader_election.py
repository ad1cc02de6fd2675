# SPDX-License-Identifier: Apache-2.0

"""Who leads, for how long, and what a clean stop leaves."""

import threading

import pytest

from nova_fairness import exception
from nova_fairness.cluster import leader_election
from nova_fairness.cluster.store import records

LEASE_S = 30.0


class FakeLeaders:
    """The part of the store that elections use."""

    def __init__(self):
        self.now = records.Leader()
        self.away = False
        self.renewals = 0

    def leader(self):
        if self.away:
            raise exception.StoreAway('away')
        return self.now

    def take_over(self, epoch, holder, now):
        if self.leader().epoch != epoch:
            raise exception.Deposed('over')
        self.now = records.Leader(epoch + 1, holder, now)
        return epoch + 1

    def renew_lease(self, epoch, now):
        if self.leader().epoch != epoch:
            raise exception.Deposed('over')
        assert now != self.now.since
        self.now = records.Leader(epoch, self.now.holder, now)
        self.renewals += 1


class Clocks:
    def __init__(self):
        self.wall, self.tick = 1000.0, 0.0

    def go(self, by_s):
        self.wall += by_s
        self.tick += by_s


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def leaders():
    return FakeLeaders()


@pytest.fixture
def process(clocks, leaders):
    def made(name):
        return leader_election.Election(
            leaders, name, LEASE_S, lambda: clocks.wall, lambda: clocks.tick
        )

    return made


def test_a_clean_stop_releases_the_lease(process, clocks):
    one, two = process('h:1'), process('h:2')
    assert one.lead() == 1
    assert two.lead() is None
    clocks.go(1)
    one.resign()
    assert two.lead() == 3
    assert one.lead() is None
    clocks.go(100)
    assert one.lead() is None


def test_a_process_that_never_led_releases_no_lease(process, leaders):
    one, two = process('h:1'), process('h:2')
    assert one.lead() == 1
    two.lead()
    two.resign()
    assert leaders.now.holder == 'h:1'


def test_a_deposed_process_releases_no_lease(process, clocks, leaders):
    one, two = process('h:1'), process('h:2')
    one.lead()
    two.lead()
    clocks.go(LEASE_S)
    assert two.lead() == 2
    one.resign()
    assert leaders.now.holder == 'h:2'


def test_a_process_can_end_while_the_store_is_away(process, leaders):
    one = process('h:1')
    one.lead()
    leaders.away = True
    one.resign()
    leaders.away = False
    assert one.lead() is None


@pytest.mark.parametrize('step_s', [0.0, -86400.0, 86400.0])
def test_long_work_keeps_the_lease_and_the_epoch(
    process, clocks, leaders, step_s
):
    one, two = process('h:1'), process('h:2')
    epoch = one.lead()
    two.lead()
    one.begin()
    for _ in range(20):
        clocks.go(LEASE_S / 2)
        clocks.wall += step_s
        one.renew()
        assert two.lead() is None
    assert leaders.now.epoch == epoch
    assert leaders.renewals == 20
    one.end()
    clocks.go(LEASE_S)
    one.renew()
    assert two.lead() == epoch + 1
    one.begin()
    with pytest.raises(exception.Deposed):
        one.renew()


def test_other_threads_do_not_renew_the_lease_of_a_stuck_thread(
    process, clocks, leaders
):
    one = process('h:1')
    one.lead()
    one.begin()
    clocks.go(LEASE_S)
    other = threading.Thread(target=one.renew)
    other.start()
    other.join()
    assert leaders.renewals == 0


def test_long_work_reports_its_progress_and_no_other_thread_does(process):
    one, beats = process('h:1'), []
    one.beat = lambda: beats.append(1)
    one.lead()
    one.renew()
    one.begin()
    other = threading.Thread(target=one.renew)
    other.start()
    other.join()
    assert beats == []
    one.renew()
    assert beats == [1]


def test_renewal_costs_nothing_while_there_is_time(process, clocks, leaders):
    one = process('h:1')
    one.lead()
    one.begin()
    for _ in range(1000):
        clocks.go(0.001)
        one.renew()
    assert leaders.renewals == 0


def test_a_store_that_is_away_ends_no_work_by_itself(process, clocks, leaders):
    one = process('h:1')
    one.lead()
    one.begin()
    clocks.go(LEASE_S / 2)
    leaders.away = True
    one.renew()
    leaders.away = False
    one.renew()
    assert leaders.renewals == 1


def test_the_log_says_once_that_a_process_leads(leaders, caplog):
    clocks = Clocks()
    elected = leader_election.Election(
        leaders, 'one', LEASE_S, lambda: clocks.wall, lambda: clocks.tick
    )
    with caplog.at_level('INFO'):
        for _ in range(4):
            assert elected.lead()
            clocks.go(LEASE_S / 2)
    assert [each.getMessage() for each in caplog.records] == [
        'process one: leads since epoch 1'
    ]
