# SPDX-License-Identifier: Apache-2.0

"""systemd hears of cycles that go on, and of none that hangs."""

import threading

import pytest

from nova_fairness import exception
from nova_fairness.runtime import supervision
from tests.fixtures import notified
from tests.fixtures import patience
from tests.unit.cluster import test_service

CYCLES = 60
HOUR_S = 3600.0


class FakeTime:
    """A minute passes whenever it is asked for."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        self.now_s += HOUR_S / CYCLES
        return self.now_s


@pytest.fixture
def world(tmp_path):
    made = test_service.World(tmp_path)
    made.cloud.add_host('h1', 8)
    yield made
    made.close()


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    with notified.listening(tmp_path, monkeypatch) as heard:
        yield heard


@pytest.fixture
def manager():
    return supervision.ServiceManager(FakeTime())


class Stopping(threading.Event):
    """Set itself after some cycles; nothing waits."""

    def __init__(self, cycles):
        super().__init__()
        self.left = cycles

    def wait(self, timeout=None):
        self.left -= 1
        if not self.left:
            self.set()
        # The pause is over: the cycle's own clock stands still.
        return self.is_set()


def test_each_cycle_is_reported(world, systemd, manager):
    process = world.process()
    process.run(Stopping(3), 0.5, manager)
    assert process.cycles == 3
    said = systemd.lines()
    assert said.count('WATCHDOG=1') >= 3
    assert 'STATUS=leads: 0 requests wait' in said


def test_a_process_that_only_waits_reports_work(world, systemd, manager):
    world.process('one').cycle()
    process = world.process('two')
    process.run(Stopping(3), 0.5, manager)
    said = systemd.lines()
    assert said.count('WATCHDOG=1') >= 3
    assert 'STATUS=waits: another process leads' in said


@pytest.mark.parametrize(
    'error',
    [exception.StoreAway('gone'), exception.CloudError('gone'), ValueError()],
)
def test_an_outage_of_an_hour_does_not_count_as_a_hang(
    world, systemd, manager, monkeypatch, error
):
    process = world.process()

    def fails():
        raise error

    monkeypatch.setattr(process, 'cycle', fails)
    process.run(Stopping(CYCLES), 0.5, manager)
    assert process.cycles_failed == CYCLES
    assert systemd.beats() >= CYCLES


def test_a_long_pause_does_not_count_as_a_hang(world, systemd, manager):
    process = world.process()
    process.run(Stopping(CYCLES), HOUR_S, manager)
    assert process.cycles == 1
    assert systemd.beats() >= CYCLES


def test_a_long_cycle_reports_the_steps_of_its_work(
    world, systemd, manager, monkeypatch
):
    process, during = world.process(), []

    def works(_epoch):
        systemd.lines()
        for _ in range(CYCLES):
            process._parts.of_one(None, lambda: None)
        during.append(systemd.beats())

    monkeypatch.setattr(process, '_act', works)
    process.run(Stopping(1), 0.5, manager)
    assert during == [CYCLES]


def test_a_cycle_that_hangs_is_not_reported(
    world, systemd, manager, monkeypatch
):
    process, ends = world.process(), threading.Event()
    hangs = threading.Event()

    def hang(_epoch):
        hangs.set()
        assert ends.wait(patience.PATIENCE_S)

    monkeypatch.setattr(process, '_act', hang)
    stopped = Stopping(1)
    thread = threading.Thread(target=process.run, args=(stopped, 0.5, manager))
    thread.start()
    try:
        assert hangs.wait(patience.PATIENCE_S)
        systemd.lines()
        # What goes on beside it covers nothing up.
        for _ in range(CYCLES):
            process.hint()
            process._election.renew()
        assert systemd.lines() == []
    finally:
        ends.set()
        thread.join()
    assert systemd.beats() >= 1
