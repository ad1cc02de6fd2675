# SPDX-License-Identifier: Apache-2.0

"""Native threads and what they share with others, also under eventlet."""

import subprocess
import sys
import threading

import pytest

from oslo_messaging_zmq import orders
from oslo_messaging_zmq import threads


def test_a_waiter_is_woken_once_set_and_not_before():
    waiter = threads.Waiter()
    assert not waiter.wait(0.01)
    threading.Timer(0.02, waiter.set).start()
    assert waiter.wait(10)
    assert waiter.wait(0)
    waiter.clear()
    assert not waiter.wait(0.01)
    waiter.close()
    waiter.set()


def test_a_mailbox_keeps_order_and_refuses_what_does_not_fit():
    box = threads.Mailbox(3)
    assert [box.put(n) for n in range(4)] == [True, True, True, False]
    assert box.take(2, None) == [0, 1]
    assert len(box) == 1
    assert box.take(9, None) == [2]
    assert box.take(9, 0.01) == []
    box.wake()
    assert box.take(9, None) == []
    box.close()


def test_without_eventlet_modules_are_what_they_are():
    assert threads.original('threading') is threading
    assert not threads.is_green()


def test_call_hands_errors_on():
    def fail():
        raise ValueError

    with pytest.raises(ValueError):
        threads.call('name', fail)


def test_orders_are_done_in_their_order_and_never_slept_over():
    queue = orders.Orders()
    done = []
    assert queue.may_sleep()
    queue.put(lambda: done.append(1))
    assert not queue.may_sleep()
    queue.put(lambda: queue.put(lambda: done.append(3)))
    queue.put(lambda: done.append(2))
    assert threads.readable(queue.descriptor, 0)
    queue.heard()
    assert not threads.readable(queue.descriptor, 0)
    queue.work()
    assert done == [1, 2]
    assert not queue.may_sleep()
    queue.work()
    assert done == [1, 2, 3]
    assert queue.may_sleep()
    queue.close()
    queue.put(lambda: done.append(4))
    assert done == [1, 2, 3]


def test_orders_wake_a_thread_that_sleeps():
    queue = orders.Orders()
    served = threading.Event()

    def serve():
        while not served.is_set():
            if queue.may_sleep():
                threads.readable(queue.descriptor, None)
                queue.heard()
            queue.work()

    thread = threads.start('serving', serve)
    for _ in range(100):
        passed = threading.Event()
        queue.put(passed.set)
        assert passed.wait(10)
    queue.put(served.set)
    thread.join(10)
    assert not thread.is_alive()
    queue.close()


class SlowToRelease:
    """A lock whose holder is held up just before it gives it back."""

    def __init__(self, meanwhile):
        self._lock = threading.Lock()
        self._meanwhile = [meanwhile]
        self.acquire = self._lock.acquire

    def release(self):
        if self._meanwhile:
            self._meanwhile.pop()()
        self._lock.release()


def test_an_order_given_while_another_one_wakes_the_thread_is_not_lost():
    queue = orders.Orders()
    done = []

    def meanwhile():
        queue.heard()
        queue.work()
        assert queue.may_sleep()
        queue.put(lambda: done.append('late'))

    queue._lock = SlowToRelease(meanwhile)
    assert queue.may_sleep()
    queue.put(lambda: done.append('early'))
    assert done == ['early']
    assert threads.readable(queue.descriptor, 0)
    queue._lock = threading.Lock()
    queue.close()


def test_no_order_is_slept_over_when_many_threads_give_them():
    queue = orders.Orders()
    served = threading.Event()

    def serve():
        while not served.is_set():
            if queue.may_sleep():
                threads.readable(queue.descriptor, None)
                queue.heard()
            queue.work()

    def give():
        for _ in range(300):
            passed = threading.Event()
            queue.put(passed.set)
            if not passed.wait(10):
                slept_over.append(1)

    slept_over = []
    thread = threads.start('serving', serve)
    givers = [threading.Thread(target=give) for _ in range(8)]
    for each in givers:
        each.start()
    for each in givers:
        each.join()
    queue.put(served.set)
    thread.join(10)
    assert slept_over == []
    queue.close()


PATCHED = """
import eventlet
eventlet.monkey_patch()
import threading
import time
from eventlet import patcher
from oslo_messaging_zmq import threads as native

sleep = patcher.original('time').sleep
ticks = []

def tick():
    while True:
        time.sleep(0.01)
        ticks.append(1)

threading.Thread(target=tick, daemon=True).start()
assert native.is_patched() and native.is_green()
waiter, box, seen = native.Waiter(), native.Mailbox(10), []

def work():
    seen.append(native.is_green())
    sleep(0.3)
    box.put('from native')
    sleep(0.3)
    waiter.set()

thread = native.start('work', work)
assert box.take(5, 10) == ['from native']
assert len(ticks) > 5, 'a green thread had to wait'
assert waiter.wait(10)
assert seen == [False]

back = native.Mailbox(10)
def listen():
    seen.extend(back.take(5, 10))
    waiter.set()

waiter.clear()
native.start('listen', listen)
back.put('from green')
# A blocked green thread does not keep the native one from what it has.
sleep(0.3)
assert seen == [False, 'from green']

before = len(ticks)
native.call('long', lambda: sleep(0.3))
assert len(ticks) > before + 5
waiter.close()
waiter.set()
print('all is well')
"""


def test_under_eventlet_native_threads_run_and_green_ones_do_not_wait():
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', PATCHED],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout == 'all is well\n', ended.stderr
