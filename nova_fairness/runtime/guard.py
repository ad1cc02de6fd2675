# SPDX-License-Identifier: Apache-2.0

"""Runs plugins beside the round, under a deadline, and quarantines them."""

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
    """Times of a thread since its start, from the scheduler.

    :ivar ran_s: CPU time, seconds.
    :ivar waited_s: for which it could have run and another did, seconds;
        the wait that it is in now is not counted.
    :ivar runnable: whether it runs, or waits only for a CPU.
    """

    ran_s: float
    waited_s: float
    runnable: bool


def turns_of(native_id: int) -> ThreadTimes:
    """Read what the kernel tells of a thread of this process.

    :param native_id: its number in the kernel.
    :returns: no time, and not runnable, where the kernel does not tell.
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

_LONGEST = 10.0
"""Deadlines that a plugin has at most on a host that gives it no CPU."""

_STEP = 0.1
"""Part of the deadline between two looks at whether the plugin got a CPU."""


_ReadTurns = Callable[[int], ThreadTimes]


class _Patience:
    """How long a call may still take.

    A plugin answers for what it does, not for a busy host: while it could
    run and others do, its time stands still.
    """

    def __init__(
        self, deadline_s: float, turns: Callable[[], ThreadTimes]
    ) -> None:
        self._deadline_s = deadline_s
        self._turns = turns
        self._first = turns()
        self._began = time.monotonic()

    def left_s(self) -> float:
        """Seconds to wait before one asks again; 0 if it is over."""
        passed = time.monotonic() - self._began
        if passed < self._deadline_s:
            return self._deadline_s - passed
        now = self._turns()
        waited = now.waited_s - self._first.waited_s
        left = self._deadline_s + waited - passed
        ran = now.ran_s - self._first.ran_s
        if now.runnable and ran < self._deadline_s:
            left = max(left, _STEP * self._deadline_s)
        longest = _LONGEST * self._deadline_s - passed
        return max(min(left, longest), 0.0)


class _Worker:
    """A daemon thread that runs one call at a time."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(
            target=self._serve, name='plugin', daemon=True
        )
        self.thread.start()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            function, answers = call
            try:
                answers.put((function(), None))
            except BaseException as error:  # noqa: BLE001 - exit ends no agent
                answers.put((None, error))

    def run(
        self, function: Callable[[], T], deadline_s: float, turns: _ReadTurns
    ) -> T:
        thread_id, ran_s = self.thread.native_id or 0, self._ran_s()
        patience = _Patience(deadline_s, lambda: turns(thread_id))
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.put((function, answers))
        try:
            result, error = _answer(answers, patience)
        except queue.Empty:
            # Asked before the thread may end.
            computes = self._ran_s() - ran_s > deadline_s / 2
            self.stop()
            if computes:
                self._interrupt()
            raise exception.PluginTooSlow(
                f'took longer than its deadline of {deadline_s:g} s'
            ) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def stop(self) -> None:
        self._calls.put(None)

    def _ran_s(self) -> float:
        """CPU time of the thread, which must be alive, seconds."""
        clock = time.pthread_getcpuclockid(self.thread.ident or 0)
        return time.clock_gettime(clock)

    def _interrupt(self) -> None:
        """End the thread, which computes, at its next step of Python code.

        A loop in Python would keep the interpreter from all other threads for
        ever. A thread that waits does no harm. An error that is pending for
        one lets CPython 3.11 loop where a tracer is set.
        """
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self.thread.ident or 0),
            ctypes.py_object(SystemExit),
        )


def _answer(answers: queue.SimpleQueue[Any], patience: _Patience) -> Any:
    """Wait for an answer.

    :raises queue.Empty: if none came in time.
    """
    while left_s := patience.left_s():
        try:
            return answers.get(timeout=left_s)
        except queue.Empty:
            continue
    return answers.get_nowait()


class Runner:
    """Runs calls on a thread, one at a time, each under a deadline.

    A call that exceeds it is left behind, and its thread ended where Python
    can end it.

    :param deadline_s: seconds that one call may take, > 0; those for which
        the host gave it no CPU do not count, up to ten deadlines.
    :param turns: tells what a thread got of the CPU.
    """

    def __init__(
        self, deadline_s: float, turns: _ReadTurns = turns_of
    ) -> None:
        self.deadline_s = deadline_s
        self._turns = turns
        self._worker: _Worker | None = None
        self.left_behind: threading.Thread | None = None
        """In which the last call still runs, if it exceeded its deadline."""

    def run(self, function: Callable[[], T]) -> T:
        """Run a function, and raise what it raises.

        :raises PluginTooSlow: if it exceeds the deadline.
        """
        self.left_behind = None
        if self._worker is None:
            self._worker = _Worker()
        try:
            return self._worker.run(function, self.deadline_s, self._turns)
        except exception.PluginTooSlow:
            self.left_behind = self._worker.thread
            self.stop()
            raise

    def stop(self) -> None:
        """End the thread; may be called twice."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


@dataclasses.dataclass(frozen=True)
class _Failure:
    """A plugin that misbehaved.

    :ivar why: what it did.
    :ivar times: how often, >= 1.
    :ivar until: when it may be tried again, monotonic seconds.
    :ivar thread: in which it may still run.
    :ivar held: whether it did not work since.
    """

    why: str
    times: int
    until: float
    thread: threading.Thread | None
    held: bool = True

    def refuses(self, now: float) -> bool:
        """Whether it must not run, monotonic seconds given."""
        runs = self.thread is not None and self.thread.is_alive()
        return self.held and (now < self.until or runs)


class Guard:
    """Lets no plugin harm a round.

    A plugin that misbehaves is quarantined: every call of it is refused at
    once, until it is tried again after a pause, or until :meth:`release`. A
    call that exceeds its deadline is left behind, see :class:`Runner`; while
    its thread lives, the plugin is not tried again.

    :param deadline_s: seconds that one call may take, > 0; those for which
        the host gave it no CPU do not count, up to ten deadlines.
    :param turns: tells what a thread got of the CPU.
    :param monotonic: seconds that never go back.
    """

    def __init__(
        self,
        deadline_s: float,
        turns: _ReadTurns = turns_of,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = Runner(deadline_s, turns)
        self._monotonic = monotonic
        self._failures: dict[str, _Failure] = {}

    @property
    def deadline_s(self) -> float:
        """Seconds that one call may take."""
        return self._runner.deadline_s

    @deadline_s.setter
    def deadline_s(self, seconds: float) -> None:
        self._runner.deadline_s = seconds

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Why each plugin in quarantine is refused, by name."""
        return {
            name: failure.why
            for name, failure in self._failures.items()
            if failure.held
        }

    def release(self, name: str) -> None:
        """Let a plugin run again."""
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
            self._readmit(name)
            return result
        self._set_aside(name, why)
        raise exception.PluginMisbehaved(f'{name}: {why}')

    def stop(self) -> None:
        """End the thread; may be called twice."""
        self._runner.stop()

    def _readmit(self, name: str) -> None:
        failure = self._failures.get(name)
        if failure is not None and failure.held:
            self._failures[name] = dataclasses.replace(failure, held=False)
            LOG.info('Plugin %s: works again; quarantine ends', name)

    def _set_aside(self, name: str, why: str) -> None:
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
            'Plugin %s: in quarantine for %.0f s: %s; weights stay meanwhile;'
            ' to try it earlier, set it again',
            name,
            pause_s,
            why,
        )
