# SPDX-License-Identifier: Apache-2.0

"""The guard lets no plugin harm a round."""

import queue
import threading

import pytest

from nova_fairness import exception
from nova_fairness.runtime import guard


@pytest.fixture
def a_guard():
    made = guard.Guard(deadline_s=5.0)
    yield made
    made.stop()


def test_a_well_behaved_plugin_gives_its_result(a_guard):
    assert a_guard.call('good', lambda: 42) == 42
    assert a_guard.quarantined == {}


def test_a_plugin_that_raises_is_quarantined_and_named(a_guard):
    with pytest.raises(exception.PluginMisbehaved, match=r'bad.*ZeroDivision'):
        a_guard.call('bad', lambda: 1 / 0)
    assert 'ZeroDivisionError' in a_guard.quarantined['bad']


def test_a_quarantined_plugin_is_not_called_again(a_guard):
    calls = []
    with pytest.raises(exception.PluginMisbehaved):
        a_guard.call('bad', lambda: 1 / 0)
    with pytest.raises(exception.PluginMisbehaved, match='in quarantine'):
        a_guard.call('bad', lambda: calls.append(1))
    assert calls == []


def test_setting_a_plugin_again_ends_its_quarantine(a_guard):
    with pytest.raises(exception.PluginMisbehaved):
        a_guard.call('bad', lambda: 1 / 0)
    a_guard.release('bad')
    assert a_guard.call('bad', lambda: 'healed') == 'healed'


class FakeClock:
    """Monotonic seconds that a test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def clocked(clock):
    made = guard.Guard(deadline_s=5.0, monotonic=clock)
    yield made
    made.stop()


def fails(made, name='bad', why='raised'):
    with pytest.raises(exception.PluginMisbehaved, match=why):
        made.call(name, lambda: 1 / 0)


def test_a_quarantined_plugin_is_tried_again_after_a_pause(clock, clocked):
    fails(clocked)
    clock.now += 59.0
    fails(clocked, why='in quarantine')
    clock.now += 1.0
    assert clocked.quarantined
    assert clocked.call('bad', lambda: 'healed') == 'healed'
    assert clocked.quarantined == {}
    assert clocked.call('bad', lambda: 'again') == 'again'


def test_the_pause_of_a_plugin_doubles_up_to_an_hour(clock, clocked):
    for pause in (60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0):
        fails(clocked)
        clock.now += pause - 1.0
        fails(clocked, why='in quarantine')
        clock.now += 1.0
    assert clocked.call('bad', lambda: 'healed') == 'healed'


def test_a_plugin_that_fails_now_and_then_waits_ever_longer(clock, clocked):
    fails(clocked)
    clock.now += 60.0
    clocked.call('bad', lambda: 'healed')
    fails(clocked)
    clock.now += 119.0
    fails(clocked, why='in quarantine')
    clock.now += 1.0
    clocked.call('bad', lambda: 'healed')
    clock.now += 241.0
    fails(clocked)
    clock.now += 60.0
    assert clocked.call('bad', lambda: 'healed') == 'healed'


def test_a_plugin_that_still_runs_is_not_called_a_second_time(clock):
    made = guard.Guard(deadline_s=0.05, monotonic=clock)
    gate, calls = threading.Event(), []
    try:
        with pytest.raises(exception.PluginMisbehaved, match='deadline'):
            made.call('stuck', gate.wait)
        stuck = made._failures['stuck'].thread
        made.deadline_s = 5.0
        clock.now += 10_000.0
        with pytest.raises(exception.PluginMisbehaved, match='in quarantine'):
            made.call('stuck', lambda: calls.append(1))
        assert not calls
        gate.set()
        stuck.join(60)
        assert made.call('stuck', lambda: 'served') == 'served'
    finally:
        gate.set()
        made.stop()


def test_a_plugin_that_exceeds_its_deadline_does_not_hold_up_others():
    made = guard.Guard(deadline_s=0.05)
    never = threading.Event()
    try:
        with pytest.raises(exception.PluginMisbehaved, match='deadline'):
            made.call('slow', never.wait)
        made.deadline_s = 5.0
        assert made.call('other', lambda: 'served') == 'served'
    finally:
        never.set()
        made.stop()


def test_a_late_answer_of_a_slow_plugin_is_nobodys_result():
    made = guard.Guard(deadline_s=0.05)
    gate = threading.Event()
    try:
        with pytest.raises(exception.PluginMisbehaved):
            made.call('slow', lambda: gate.wait() and 'late')
        gate.set()
        made.deadline_s = 5.0
        assert made.call('other', lambda: 'own') == 'own'
    finally:
        made.stop()


def test_a_plugin_that_calls_exit_is_quarantined(a_guard):
    def leave():
        raise SystemExit(3)

    with pytest.raises(exception.PluginMisbehaved, match='SystemExit'):
        a_guard.call('leaver', leave)


class FakeTurns:
    """What the scheduler says of a thread, one answer after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, native_id):
        assert native_id > 0
        self.asked += 1
        return guard.ThreadTimes(
            *(self.answers.pop(0) if self.answers else (0.0, 0.0, False))
        )


IDLE = (0.0, 0.0, False)


@pytest.mark.parametrize(
    'held_up',
    [
        pytest.param((0.0, 100.0, False), id='waited-for-a-cpu'),
        pytest.param((0.01, 0.0, True), id='waits-for-a-cpu'),
    ],
)
def test_time_without_a_cpu_does_not_count(held_up):
    turns = FakeTurns(IDLE, *[held_up] * 1000)
    made = guard.Guard(deadline_s=0.2, turns=turns)
    gate = threading.Event()

    def slow():
        while turns.asked < 2:
            gate.wait(0.001)
        return 'in the end'

    try:
        assert made.call('slow', slow) == 'in the end'
        assert made.quarantined == {}
    finally:
        made.stop()


@pytest.mark.parametrize(
    'own_fault',
    [
        pytest.param((0.05, 0.0, True), id='computes'),
        pytest.param((0.0, 0.0, False), id='sleeps'),
    ],
)
def test_time_that_a_plugin_takes_itself_counts(own_fault):
    made = guard.Guard(deadline_s=0.05, turns=FakeTurns(IDLE, own_fault))
    never = threading.Event()
    try:
        with pytest.raises(exception.PluginMisbehaved, match='deadline'):
            made.call('slow', never.wait)
    finally:
        never.set()
        made.stop()


def test_a_host_that_gives_no_cpu_holds_up_a_round_for_ten_deadlines():
    turns = FakeTurns(IDLE, *[(0.0, 0.0, True)] * 1000)
    made = guard.Guard(deadline_s=0.01, turns=turns)
    never = threading.Event()
    try:
        with pytest.raises(exception.PluginMisbehaved, match='deadline'):
            made.call('slow', never.wait)
        assert turns.answers
    finally:
        never.set()
        made.stop()


def test_the_kernel_tells_the_cpu_time_of_a_thread():
    own = guard.turns_of(threading.get_native_id())
    assert own.runnable
    assert own.ran_s > 0
    assert own.waited_s >= 0


def test_an_ended_thread_has_no_cpu_time():
    beyond_any = 2**22 + 1
    assert guard.turns_of(beyond_any) == guard.ThreadTimes(
        0.0, 0.0, runnable=False
    )


def test_a_plugin_that_loops_for_ever_is_ended_after_its_deadline():
    made = guard.Runner(deadline_s=0.05)
    threads = []

    def loops():
        threads.append(threading.current_thread())
        while True:
            pass

    with pytest.raises(exception.PluginTooSlow, match=r'0\.05 s'):
        made.run(loops)
    threads[0].join(30)
    assert not threads[0].is_alive()
    assert made.run(lambda: 'served') == 'served'
    made.stop()


def test_an_empty_queue_of_a_plugin_is_its_own_error(a_guard):
    made = guard.Runner(deadline_s=5.0)
    with pytest.raises(queue.Empty):
        made.run(queue.SimpleQueue().get_nowait)
    made.stop()
