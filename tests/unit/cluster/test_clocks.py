# SPDX-License-Identifier: Apache-2.0

"""Which time counts while clocks disagree, and what is not done until then."""

import dataclasses
import random

import pytest

from nova_fairness.cluster import clocks
from nova_fairness.model import eviction
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service as ends

world = ends.world
S = request.State
DAY_S = 86400.0
SETTLES_S = clocks.SETTLES_S


class Times:
    """A host, its monotonic clock and a database."""

    def __init__(self, database=0.0):
        self.wall, self.steady, self.apart = 1e9, 50.0, database

    def made(self, has_database=True):
        return clocks.Clocks(
            lambda: self.wall,
            lambda: self.steady,
            (lambda: self.wall + self.apart) if has_database else lambda: None,
        )

    def go(self, by_s):
        self.wall += by_s
        self.steady += by_s

    def step(self, by_s):
        """The clock of the host is set, that of the database is not."""
        self.wall += by_s
        self.apart -= by_s


@pytest.mark.parametrize('by_s', [DAY_S, -DAY_S, 61.0, -61.0, 1e8, -1e8])
@pytest.mark.parametrize('has_database', [True, False])
def test_time_is_continuous_through_a_clock_step_and_back(by_s, has_database):
    times = Times()
    made = times.made(has_database)
    assert made.look() == ''
    right = times.wall
    times.step(by_s)
    for _ in range(3):
        times.go(5)
        right += 5
        assert made.now() == right
        assert made.fault
        assert made.look()
    times.step(-by_s)
    assert made.fault == made.look() == ''
    assert made.now() == right
    assert made.suspensions == 1


@pytest.mark.parametrize('by_s', [60.0, -60.0, 1.0])
def test_a_deviation_below_a_minute_is_no_clock_step(by_s):
    times = Times()
    made = times.made()
    made.look()
    times.step(by_s)
    assert (made.look(), made.now()) == ('', times.wall)


@pytest.mark.parametrize('by_s', [50.0, -50.0, 5.0, -5.0])
@pytest.mark.parametrize('has_database', [True, False])
def test_small_steps_are_no_long_one(by_s, has_database):
    """Each is a moment of NTP; together they would expire requests."""
    times = Times()
    made = times.made(has_database)
    made.look()
    right, faults = times.wall, 0
    for _ in range(720):
        times.go(5)
        times.wall += by_s
        right += 5
        faults += bool(made.look())
        assert abs(made.now() - right) <= 2 * clocks.MOST_S
    assert faults


def test_a_clock_that_drifts_is_no_fault():
    """A bad one gains seconds in an hour; NTP slews it by less."""
    times = Times()
    made = times.made(has_database=False)
    for _ in range(24 * 60):
        times.go(60)
        times.wall += 0.5
        assert (made.look(), made.now()) == ('', times.wall)


@pytest.mark.parametrize('by_s', [DAY_S, -DAY_S])
@pytest.mark.parametrize('has_database', [True, False])
def test_a_lasting_clock_step_confirmed_by_the_database_is_accepted(
    by_s, has_database
):
    times = Times()
    made = times.made(has_database)
    made.look()
    times.wall += by_s
    for _ in range(int(SETTLES_S // 60)):
        assert made.look()
        times.go(60)
    times.go(60)
    assert (made.look(), made.now()) == ('', times.wall)


def test_a_time_that_the_database_contradicts_is_never_accepted():
    times = Times()
    made = times.made()
    made.look()
    times.step(DAY_S)
    for _ in range(int(10 * SETTLES_S // 60)):
        times.go(60)
        assert made.look()
    # The database is set as well: only from now on do both agree.
    times.apart = 0.0
    assert made.look()
    times.go(SETTLES_S - 1)
    assert made.look()
    times.go(1)
    assert made.look() == ''


def test_a_second_clock_step_restarts_the_wait():
    times = Times()
    made = times.made()
    made.look()
    times.wall += DAY_S
    made.look()
    times.go(SETTLES_S - 1)
    times.wall += DAY_S
    assert made.look()
    times.go(SETTLES_S - 1)
    assert made.look()
    times.go(1)
    assert made.look() == ''


@pytest.mark.parametrize('apart_s', [DAY_S, -DAY_S, 61.0])
def test_a_process_with_a_wrong_clock_begins_with_the_time_of_the_database(
    apart_s,
):
    times = Times(apart_s)
    made = times.made()
    assert 'of that of the database' in made.look()
    assert made.now() == pytest.approx(times.wall + apart_s)
    times.go(10)
    assert made.now() == pytest.approx(times.wall + apart_s)
    times.step(apart_s)
    assert (made.look(), made.now()) == ('', times.wall)


def test_a_database_whose_clock_is_wrong_changes_no_time():
    times = Times()
    made = times.made()
    made.look()
    times.apart = DAY_S
    assert made.look()
    times.go(5)
    assert made.now() == times.wall
    times.apart = 0.0
    assert made.look() == ''


@pytest.mark.parametrize('seed', range(20))
def test_time_never_goes_back_or_jumps_while_clocks_disagree(seed):
    chance = random.Random(seed)
    times = Times()
    made = times.made(chance.random() < 0.5)
    made.look()
    before, before_s = made.now(), times.steady
    for _ in range(200):
        if chance.random() < 0.2:
            times.step(chance.choice([-1, 1]) * 10 ** chance.uniform(0, 8))
        times.go(chance.uniform(0, 10))
        if chance.random() < 0.5:
            made.look()
        now = made.now()
        passed_s = times.steady - before_s
        # Steps that are none are taken as they come.
        assert abs(now - before - passed_s) <= clocks.MOST_S + 1e-6
        before, before_s = now, times.steady


def cycles(world, process, count):
    for _ in range(count):
        world.go(5)
        process.cycle()


@pytest.mark.repeated
@pytest.mark.parametrize('by_s', [DAY_S, -DAY_S, 3600.0, 40 * DAY_S])
@pytest.mark.parametrize('wrong', [1, 5])
def test_a_wrong_clock_ends_no_request_and_no_server(world, by_s, wrong):
    process = world.process()
    waits = world.post('waits', 99, hints={'fairness_longest_wait': ['30m']})
    runs = world.post('runs', 2, hints={'fairness_time_limit': ['30m']})
    process.cycle()
    world.cloud.build(runs, 'h1', {'VCPU': 2, 'MEMORY_MB': 100})
    cycles(world, process, 20)
    charged = world.store.read_ledger()
    world.now += by_s
    cycles(world, process, wrong)
    assert world.store.read_ledger() == charged
    world.now -= by_s
    cycles(world, process, 2)
    assert (world.state(waits), world.state(runs)) == (S.WAITING, S.ACTIVE)
    assert waits in world.cloud.servers
    assert (
        world.store.leaves.newest_in_states(frozenset(eviction.EvictionState))
        == {}
    )
    assert abs(world.store.read_ledger().at - world.now) < 120
    # What is due by the right time is done.
    world.go(1800)
    cycles(world, process, 2)
    assert world.state(waits) is S.EXPIRED
    assert waits not in world.cloud.servers
    assert runs in world.store.leaves.newest_in_states(eviction.LIVE)


@pytest.mark.parametrize('apart_s', [DAY_S, -DAY_S])
def test_a_service_that_starts_with_a_wrong_clock_ends_nothing(world, apart_s):
    world.database_time = world.now
    waits = world.post('waits', 99, hints={'fairness_longest_wait': ['30m']})
    process = world.process()
    process.cycle()
    world.now += apart_s
    world.database_time += 5
    other = world.process('two')
    other.cycle()
    world.tick += 31
    world.database_time += 31
    assert other.cycle()
    assert other.clocks.fault
    assert world.state(waits) is S.WAITING
    assert abs(world.store.read_ledger().at - world.database_time) < 120


def test_a_request_that_fits_starts_while_clocks_disagree(world):
    process = world.process()
    process.cycle()
    world.now += DAY_S
    world.tick += 5
    server = world.post('r1', 2)
    process.cycle()
    assert world.state(server) is S.STARTING
    assert fake_cloud.name_uuid('r1') == server


@pytest.mark.parametrize('ahead_s', [DAY_S, 3600.0])
def test_a_request_with_a_future_time_counts_as_new(world, ahead_s):
    server = fake_cloud.name_uuid('r1')
    world.cloud.add_server(server)
    hints = {'fairness_longest_wait': ['30m']}
    cast = ends.build('r1', server, 99, hints=hints)
    world.store.store_message(
        dataclasses.replace(cast, received_at=world.now + ahead_s)
    )
    process = world.process()
    process.cycle()
    found = world.store.request(server).request
    assert (found.asked_at, found.expires_at) == (world.now, world.now + 1800)
    world.go(1801)
    process.cycle()
    assert world.state(server) is S.EXPIRED
