# SPDX-License-Identifier: Apache-2.0


"""An agent that is killed at a chosen system call.

A child process runs a life of the applier with every system call counted
that changes a file. At the chosen one it sends itself SIGKILL: nothing is
flushed, closed or cleaned up by Python, and locks are those of the kernel.
"""

from collections.abc import Callable
from collections.abc import Iterator
import fcntl
import itertools
import os
import signal
import sys
import traceback

from tests.fixtures import effort

QUICK_STEP = 12

_CALLS = (
    (os, 'open'),
    (os, 'write'),
    (os, 'fsync'),
    (os, 'replace'),
    (os, 'link'),
    (os, 'mkdir'),
    (os, 'close'),
    (fcntl, 'flock'),
)


class _Deadline:
    """Counts system calls and ends the process at one of them.

    A write counts twice: before it, and after half of its bytes.
    """

    def __init__(self, at: int) -> None:
        self._left = at

    def install(self) -> None:
        for module, name in _CALLS:
            setattr(module, name, self._wrap(getattr(module, name)))

    def _wrap(self, call: Callable) -> Callable:
        def counted(*args, **options):
            self._tick()
            if call.__name__ == 'write':
                self._tick(lambda: call(args[0], _half(args[1])))
            return call(*args, **options)

        return counted

    def _tick(self, last_act: Callable[[], object] = lambda: None) -> None:
        self._left -= 1
        if self._left == 0:
            last_act()
            os.kill(os.getpid(), signal.SIGKILL)


def _half(content) -> bytes:
    # A control takes a value at once or not at all.
    whole = bytes(content)
    return whole[: len(whole) // 2] if len(whole) > 20 else whole


def _nothing(descriptor: int) -> None:
    """Take the place of fsync, which takes most of the time."""


def run(life: Callable[[], None], at: int = 0) -> bool:
    """Run a life in a child process, killed at system call ``at``.

    :param at: counted from 1; 0 lets it live.
    :returns: whether it lived to its end.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # Who is killed loses nothing that a disk has not got yet.
            os.fsync = _nothing
            if at:
                _Deadline(at).install()
            life()
            status = 0
        except BaseException:
            # The reporter of the test never sees what ends another process.
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, 'the life failed'
    return True


def moments(
    life: Callable[[], None], prepare: Callable[[], None]
) -> Iterator[int]:
    """Run a life killed at its system calls in turn.

    A quick run takes one of every ``QUICK_STEP`` calls.

    :param prepare: makes the beginning of each life the same.
    :returns: the number of the call at which it was killed.
    """
    for at in itertools.count(1, 1 if effort.FULL else QUICK_STEP):
        prepare()
        if run(life, at):
            return
        yield at
