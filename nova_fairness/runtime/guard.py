# SPDX-License-Identifier: Apache-2.0

"""Runs plugins outside the round, under a deadline, and quarantines them."""

from collections.abc import Callable
from collections.abc import Mapping
import ctypes
import dataclasses
import logging
import pathlib
import queue
import threading
import time
from typing import Any
from typing import TypeVar

from nova_fairness import exception
from nova_fairness.runtime import retry_pauses

LOG = logging.getLogger(__name__)

_TASKS = pathlib.Path('/proc/self/task')
_NS = 1e-9


@dataclasses.dataclass(frozen=True)
class ThreadTimes:
    """Times of a thread since its start, from the kernel's scheduler.

    :ivar ran_s: CPU time, seconds.
    :ivar waited_s: completed waits for a CPU, seconds.
    :ivar runnable: whether it runs, or waits only for a CPU.
    """

    ran_s: float
    waited_s: float
    runnable: bool


def turns_of(native_id: int) -> ThreadTimes:
    """Read the scheduler's times of a thread of this process.

    :param native_id: thread ID in the kernel.
    :returns: zeros, and not runnable, if they cannot be read.
    """
    task = _TASKS / str(native_id)
    try:
        ran, waited, _ = (task / 'schedstat').read_text('ascii').split()
        _, _, after_name = (task / 'stat').read_text('utf-8').rpartition(')')
        return ThreadTimes(
            int(ran) * _NS, int(waited) * _NS, after_name.split()[0] == 'R'
        )
    except (OSError, ValueError, IndexError):
        return ThreadTimes(0.0, 0.0, runnable=False)


T = TypeVar('T')

_MAX_DEADLINES = 10.0
"""Longest run time of a call, in deadlines, on a host without a free CPU."""

_RECHECK_PART = 0.1
"""Part of the deadline between two checks whether the plugin got a CPU."""


_ReadTimes = Callable[[int], ThreadTimes]


class _CallTimer:
    """Computes how long a call may still take.

    Time in which the thread waits for a CPU does not count, because the plugin
    does not cause it.
    """

    def __init__(
        self, deadline_s: float, turns: Callable[[], ThreadTimes]
    ) -> None:
        self._deadline_s = deadline_s
        self._read_times = turns
        self._first = turns()
        self._began = time.monotonic()

    def left_s(self) -> float:
        """Return the seconds until the next check; 0 at the end."""
        passed = time.monotonic() - self._began
        if passed < self._deadline_s:
            return self._deadline_s - passed
        now = self._read_times()
        waited = now.waited_s - self._first.waited_s
        left = self._deadline_s + waited - passed
        ran = now.ran_s - self._first.ran_s
        if now.runnable and ran < self._deadline_s:
            left = max(left, _RECHECK_PART * self._deadline_s)
        longest = _MAX_DEADLINES * self._deadline_s - passed
        return max(min(left, longest), 0.0)


class _Worker:
    """A daemon thread that runs one call at a time."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(
            target=self._run_calls, name='plugin', daemon=True
        )
        self.thread.start()

    def _run_calls(self) -> None:
        while (call := self._calls.get()) is not None:
            function, answers = call
            try:
                answers.put((function(), None))
            except BaseException as error:  # noqa: BLE001 - exit ends no agent
                answers.put((None, error))

    def run(
        self, function: Callable[[], T], deadline_s: float, turns: _ReadTimes
    ) -> T:
        """Run a function under a deadline; raise what it raises."""
        thread_id, ran_s = self.thread.native_id or 0, self._cpu_time_s()
        patience = _CallTimer(deadline_s, lambda: turns(thread_id))
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.put((function, answers))
        try:
            result, error = _wait_for_answer(answers, patience)
        except queue.Empty:
            # Asked before the thread may end.
            computes = self._cpu_time_s() - ran_s > deadline_s / 2
            self.stop()
            if computes:
                self._end_thread()
            raise exception.PluginTooSlow(
                f'took longer than its deadline of {deadline_s:g} s'
            ) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Stop the thread after its present call."""
        self._calls.put(None)

    def _cpu_time_s(self) -> float:
        """Return the CPU time of the thread in seconds; the thread must
        be alive.
        """
        clock = time.pthread_getcpuclockid(self.thread.ident or 0)
        return time.clock_gettime(clock)

    def _end_thread(self) -> None:
        """End the computing thread at its next step of Python code.

        A loop in Python would slow down all other threads for ever. A waiting
        thread needs no end: a pending error would let CPython 3.11 loop where
        a tracer is set.
        """
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self.thread.ident or 0),
            ctypes.py_object(SystemExit),
        )


def _wait_for_answer(
    answers: queue.SimpleQueue[Any], patience: _CallTimer
) -> Any:
    """Wait for the result of a call.

    :raises queue.Empty: if the deadline passed.
    """
    while left_s := patience.left_s():
        try:
            return answers.get(timeout=left_s)
        except queue.Empty:
            continue
    return answers.get_nowait()


class Runner:
    """Runs calls on a thread, one at a time, each under a deadline.

    A call that exceeds the deadline is abandoned, and its thread ended if
    Python can end it.

    :param deadline_s: longest run time of one call in seconds, > 0; waits for
        a CPU do not count, up to ten deadlines.
    :param turns: reads the scheduler's times of a thread.
    """

    def __init__(
        self, deadline_s: float, turns: _ReadTimes = turns_of
    ) -> None:
        self.deadline_s = deadline_s
        self._read_times = turns
        self._worker: _Worker | None = None
        self.left_behind: threading.Thread | None = None
        """In which the last call still runs, if it exceeded its deadline."""

    def run(self, function: Callable[[], T]) -> T:
        """Run a function; raise what it raises.

        :raises PluginTooSlow: if it exceeds the deadline.
        """
        self.left_behind = None
        if self._worker is None:
            self._worker = _Worker()
        try:
            return self._worker.run(
                function, self.deadline_s, self._read_times
            )
        except exception.PluginTooSlow:
            self.left_behind = self._worker.thread
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the thread; may be called twice."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


@dataclasses.dataclass(frozen=True)
class _Failure:
    """A plugin that misbehaved.

    :ivar why: what it did.
    :ivar times: number of failures, >= 1.
    :ivar until: end of the quarantine, monotonic seconds.
    :ivar thread: in which it may still run.
    :ivar held: whether it has not worked since.
    """

    why: str
    times: int
    until: float
    thread: threading.Thread | None
    held: bool = True

    def refuses(self, now: float) -> bool:
        """Check whether the plugin must not run at this time, monotonic
        seconds.
        """
        runs = self.thread is not None and self.thread.is_alive()
        return self.held and (now < self.until or runs)


_MEANWHILE = 'weights stay meanwhile; to try it earlier, set it again'


class Guard:
    """Protects rounds from faulty plugins.

    A plugin that misbehaves is quarantined: every call is refused at once,
    until the pause ends or :meth:`release` is called. A call that exceeds its
    deadline is abandoned, see :class:`Runner`; while its thread lives, the
    plugin stays in quarantine.

    :param deadline_s: longest run time of one call in seconds, > 0; waits for
        a CPU do not count, up to ten deadlines.
    :param turns: reads the scheduler's times of a thread.
    :param monotonic: monotonic clock, seconds.
    :param meanwhile: for the log: what a quarantine means, and how to end it.
    """

    def __init__(
        self,
        deadline_s: float,
        turns: _ReadTimes = turns_of,
        monotonic: Callable[[], float] = time.monotonic,
        meanwhile: str = _MEANWHILE,
    ) -> None:
        self._runner = Runner(deadline_s, turns)
        self._monotonic = monotonic
        self._meanwhile = meanwhile
        self._failures: dict[str, _Failure] = {}

    @property
    def deadline_s(self) -> float:
        """The longest run time of one call, in seconds."""
        return self._runner.deadline_s

    @deadline_s.setter
    def deadline_s(self, seconds: float) -> None:
        self._runner.deadline_s = seconds

    @property
    def quarantined(self) -> Mapping[str, str]:
        """The cause of each plugin's quarantine, by name."""
        return {
            name: failure.why
            for name, failure in self._failures.items()
            if failure.held
        }

    def release(self, name: str) -> None:
        """End the quarantine of a plugin."""
        self._failures.pop(name, None)

    def call(self, name: str, function: Callable[[], T]) -> T:
        """Run a plugin's function.

        :raises PluginMisbehaved: if it raised, took too long, or is in
            quarantine.
        """
        failure = self._failures.get(name)
        if failure is not None and failure.refuses(self._monotonic()):
            raise exception.PluginMisbehaved(
                f'{name} is in quarantine: {failure.why}'
            )
        try:
            result = self._runner.run(function)
        except exception.PluginMisbehaved as error:
            why = str(error)
        except BaseException as error:  # noqa: BLE001 - plugins raise anything
            why = f'raised {type(error).__name__}: {error}'
        else:
            self._end_quarantine(name)
            return result
        self._quarantine(name, why)
        raise exception.PluginMisbehaved(f'{name}: {why}')

    def stop(self) -> None:
        """Stop the thread; may be called twice."""
        self._runner.stop()

    def _end_quarantine(self, name: str) -> None:
        failure = self._failures.get(name)
        if failure is not None and failure.held:
            self._failures[name] = dataclasses.replace(failure, held=False)
            LOG.info('Plugin %s: works again; quarantine ends', name)

    def _quarantine(self, name: str, why: str) -> None:
        now, before = self._monotonic(), self._failures.get(name)
        times = 1
        if before is not None and retry_pauses.is_relapse(
            before.times, now - before.until
        ):
            times += before.times
        pause_s = retry_pauses.pause_s(times)
        self._failures[name] = _Failure(
            why, times, now + pause_s, self._runner.left_behind
        )
        LOG.error(
            'Plugin %s: in quarantine for %.0f s: %s; %s',
            name,
            pause_s,
            why,
            self._meanwhile,
        )
