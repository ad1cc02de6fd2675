# SPDX-License-Identifier: Apache-2.0

"""Processes that the laboratory started: who they are, how they end.

A process number is reused, so a process is known by its number and its start
time, and a signal goes to a descriptor of the very process that was checked.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

from nova_fairness import exception

_PROC = pathlib.Path('/proc')
_START_FIELD = 19


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """One process, for as long as this machine runs.

    :ivar pid: its number.
    :ivar start_ticks: start time, clock ticks since boot.
    """

    pid: int
    start_ticks: int


def boot_id() -> str:
    """Id of this boot of the machine."""
    return (_PROC / 'sys/kernel/random/boot_id').read_text().strip()


def identify(pid: int) -> Identity | None:
    """Identity of a process; ``None`` if it is gone or a zombie."""
    try:
        stat = (_PROC / str(pid) / 'stat').read_text()
    except OSError:
        return None
    fields = stat.rpartition(')')[2].split()
    if fields[0] in {'Z', 'X'}:
        return None
    return Identity(pid, int(fields[_START_FIELD]))


def is_alive(identity: Identity) -> bool:
    """Whether that very process still runs."""
    return identify(identity.pid) == identity


def send(
    pid: int, number: signal.Signals, is_ours: Callable[[int], bool]
) -> bool:
    """Send a signal to a process if, once it is held, it is ours.

    :param is_ours: asked after the process can no longer be mistaken.
    :returns: whether the signal was sent.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_ours(pid):
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def descendants(pid: int) -> Iterator[int]:
    """Children of a process, their children, and so on."""
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / 'task').iterdir():
            for child in (task / 'children').read_text().split():
                yield int(child)
                yield from descendants(int(child))


def end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """End a child: ask, wait, then kill.

    :param patience_s: seconds between the two, >= 0.
    """
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    if process.poll() is None:
        process.kill()
        process.wait()


def end_all(
    list_pids: Callable[[], Iterable[int]],
    is_ours: Callable[[int], bool],
    patience_s: float = 10.0,
) -> None:
    """Kill every process of a changing set until none is left.

    :param list_pids: gives the present members of the set.
    :param is_ours: tells whether a process is a member.
    :raises LabError: if some are left after ``patience_s`` seconds.
    """
    deadline = time.monotonic() + patience_s
    while alive := [pid for pid in list_pids() if identify(pid)]:
        if time.monotonic() > deadline:
            raise exception.LabError(
                f'processes {alive} of the laboratory could not be ended'
            )
        for pid in alive:
            send(pid, signal.SIGKILL, is_ours)
        time.sleep(0.02)


def run(
    command: Sequence[str],
    cwd: pathlib.Path | None = None,
    named: str | None = None,
) -> str:
    """Run a command to its end, and return its output.

    :param cwd: directory to run it in; ``None`` for the present one.
    :param named: how errors call it; ``None`` for the command itself.
    :raises LabEnvironmentError: if there is no such command.
    :raises LabError: if it fails; the message holds what it said.
    """
    try:
        finished = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise exception.LabEnvironmentError(
            f'the laboratory needs the command {command[0]}, '
            'which is not installed'
        ) from None
    if finished.returncode:
        raise exception.LabError(
            f'{named or " ".join(command)} failed with exit code '
            f'{finished.returncode}: {finished.stderr.strip()}'
        )
    return finished.stdout


def wait_until(
    holds: Callable[[], bool], patience_s: float, step_s: float = 0.02
) -> bool:
    """Wait for a condition.

    :param patience_s: seconds to wait at most.
    :param step_s: seconds between two looks.
    :returns: whether it came true in time.
    """
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(step_s)
    return True
