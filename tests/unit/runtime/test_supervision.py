# SPDX-License-Identifier: Apache-2.0

"""systemd hears of a process by a datagram socket, and of progress alone."""

import pytest

from nova_fairness.runtime import supervision
from tests.fixtures import notified


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    with notified.listening(tmp_path, monkeypatch) as heard:
        yield heard


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(clock):
    return supervision.ServiceManager(clock)


def test_a_service_reports_its_start_status_and_end(systemd, manager):
    with manager.serving():
        manager.say('leads: 2 requests wait')
        manager.say('leads: 2 requests wait')
    assert systemd.lines() == [
        'READY=1',
        'STATUS=leads: 2 requests wait',
        'STOPPING=1',
    ]


def test_an_error_that_ends_a_service_is_told_as_an_end(systemd, manager):
    with pytest.raises(ValueError), manager.serving():
        raise ValueError
    assert systemd.lines() == ['READY=1', 'STOPPING=1']


@pytest.mark.parametrize('text', ['a\nWATCHDOG=trigger', 'a\ud800'])
def test_text_of_others_is_one_line_that_can_be_sent(systemd, manager, text):
    manager.say(text)
    [line] = systemd.lines()
    assert '\n' not in line
    assert line.startswith('STATUS=a\\')


def test_work_is_reported_once_every_loop_went_on(systemd, manager, clock):
    first, second = manager.loop(), manager.loop()
    for _ in range(5):
        clock.now_s += 60.0
        first()
    assert systemd.beats() == 0
    second()
    assert systemd.beats() == 1
    clock.now_s += 60.0
    second()
    assert systemd.beats() == 0
    first()
    assert systemd.beats() == 1


def test_a_busy_loop_does_not_flood_systemd(systemd, manager, clock):
    beat = manager.loop()
    for _ in range(1000):
        clock.now_s += 0.01
        beat()
    assert 5 <= systemd.beats() <= 11


def test_without_systemd_nothing_is_sent_and_nothing_fails(
    monkeypatch, manager
):
    monkeypatch.delenv(notified.VARIABLE, raising=False)
    manager.loop()()
    with manager.serving():
        manager.say('works')


def test_a_socket_that_is_gone_ends_no_work(monkeypatch, manager, tmp_path):
    monkeypatch.setenv(notified.VARIABLE, str(tmp_path / 'none'))
    manager.loop()()
    manager.ready()
