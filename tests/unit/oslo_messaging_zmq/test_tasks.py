# SPDX-License-Identifier: Apache-2.0

"""Tasks for the thread that owns sockets."""

import select
import threading

from oslo_messaging_zmq import tasks


def readable(descriptor, timeout_s):
    limit = [] if timeout_s is None else [timeout_s]
    return bool(select.select([descriptor], [], [], *limit)[0])


def test_tasks_are_done_in_their_order_and_never_slept_over():
    queue = tasks.TaskQueue()
    done = []
    assert queue.may_sleep()
    queue.put(lambda: done.append(1))
    assert not queue.may_sleep()
    queue.put(lambda: queue.put(lambda: done.append(3)))
    queue.put(lambda: done.append(2))
    assert readable(queue.descriptor, 0)
    queue.heard()
    assert not readable(queue.descriptor, 0)
    queue.work()
    assert done == [1, 2]
    assert not queue.may_sleep()
    queue.work()
    assert done == [1, 2, 3]
    assert queue.may_sleep()
    queue.close()
    queue.put(lambda: done.append(4))
    assert done == [1, 2, 3]


def test_tasks_wake_a_thread_that_sleeps():
    queue = tasks.TaskQueue()
    served = threading.Event()

    def serve():
        while not served.is_set():
            if queue.may_sleep():
                readable(queue.descriptor, None)
                queue.heard()
            queue.work()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
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


def test_a_task_given_while_another_one_wakes_the_thread_is_not_lost():
    queue = tasks.TaskQueue()
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
    assert readable(queue.descriptor, 0)
    queue._lock = threading.Lock()
    queue.close()


def test_no_task_is_slept_over_when_many_threads_give_them():
    queue = tasks.TaskQueue()
    served = threading.Event()

    def serve():
        while not served.is_set():
            if queue.may_sleep():
                readable(queue.descriptor, None)
                queue.heard()
            queue.work()

    def give():
        for _ in range(300):
            passed = threading.Event()
            queue.put(passed.set)
            if not passed.wait(10):
                slept_over.append(1)

    slept_over = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    givers = [threading.Thread(target=give) for _ in range(8)]
    for each in givers:
        each.start()
    for each in givers:
        each.join()
    queue.put(served.set)
    thread.join(10)
    assert slept_over == []
    queue.close()


def test_the_socket_thread_continues_after_an_error(monkeypatch, caplog):
    monkeypatch.setattr(tasks, '_PAUSE_S', 0)
    done = []

    def turn():
        done.append(1)
        if len(done) == 1:
            raise RuntimeError('a bug')

    tasks.repeat(turn, lambda: len(done) == 3, 'reader')
    assert caplog.messages == [
        "reader: unexpected error; it continues: RuntimeError('a bug')"
    ]
