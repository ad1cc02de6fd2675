# SPDX-License-Identifier: Apache-2.0

import socket
import threading

import pytest

from fairness_lab.testbed.guests import guest
from nova_fairness import exception


class FakeGuest(threading.Thread):
    """Answers commands from a table, one line each."""

    def __init__(self, path, answers):
        super().__init__(daemon=True)
        self.answers = answers
        self.heard = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile('rw') as stream:
            stream.write('ready\n')
            stream.flush()
            for command in stream:
                self.heard.append(command.strip())
                answer = self.answers.get(command.split()[0])
                if answer is None:
                    return
                stream.write(answer)
                stream.flush()


@pytest.fixture
def talk(tmp_path):
    opened = []

    def start(**answers):
        path = tmp_path / 'guest.sock'
        fake = FakeGuest(path, answers)
        made = guest.GuestLine('vm', path)
        opened.append((fake, made))
        assert made.await_ready(10)
        return fake, made

    yield start
    for fake, made in opened:
        made.close()
        fake.listener.close()


def test_an_answer_comes_without_the_commands_name(talk):
    fake, made = talk(write='done write 4096 17\n')
    assert made.ask('write 4096', 10) == ['4096', '17']
    assert fake.heard == ['write 4096']


def test_a_report_in_between_is_no_answer(talk):
    _, made = talk(cpu='work 7 read 8\ndone cpu\n')
    assert made.ask('cpu max', 10) == []
    assert made.report == {'work': 7, 'read': 8}


def test_half_a_report_does_not_replace_a_whole_one(talk):
    _, made = talk(cpu='work 7 read 8\nwork 9 re\ndone cpu\n')
    made.ask('cpu max', 10)
    assert made.report == {'work': 7, 'read': 8}


def test_a_counter_goes_on_between_reports_as_fast_as_before(
    talk, monkeypatch
):
    _, made = talk(one='work 100\ndone one\n', two='work 300\ndone two\n')
    assert made.now('work') is None
    clock = [10.0]
    monkeypatch.setattr(guest.time, 'monotonic', lambda: clock[0])
    made.ask('one', 10)
    assert made.now('work') == 100
    clock[0] = 12.0
    made.ask('two', 10)
    clock[0] = 12.5
    assert made.now('work') == 350
    clock[0] = 1000.0
    assert made.now('work') == 300 + 100 * guest.FARTHEST_S
    assert made.now('flights') is None


def test_reports_that_were_read_late_make_no_counter_faster(talk, monkeypatch):
    said = {name: f'work {n}\ndone {name}\n' for name, n in
            (('one', 100), ('two', 300), ('three', 500))}  # fmt: skip
    _, made = talk(**said)
    clock = [10.0]
    monkeypatch.setattr(guest.time, 'monotonic', lambda: clock[0])
    for name, at_s in (('one', 10.0), ('two', 14.0), ('three', 14.001)):
        clock[0] = at_s
        made.ask(name, 10)
    clock[0] = 15.001
    assert made.now('work') == 600


def test_a_command_unknown_to_the_guest_is_an_error(talk):
    _, made = talk(fly='error fly\n')
    with pytest.raises(exception.LabError, match=r"does not know 'fly'"):
        made.ask('fly', 10)


def test_a_guest_that_is_silent_is_named(talk):
    _, made = talk(cpu='')
    with pytest.raises(exception.LabError, match='vm did not answer'):
        made.ask('cpu 1', 0.05)


def test_a_guest_that_ends_is_named(talk):
    _, made = talk()
    with pytest.raises(exception.LabError, match='vm ended'):
        made.ask('cpu 1', 10)


def test_a_port_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(exception.LabError, match='no serial port'):
        guest.GuestLine('vm', tmp_path / 'none')
