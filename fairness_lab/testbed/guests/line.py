# SPDX-License-Identifier: Apache-2.0

"""The line to a guest: commands go in, answers and reports come out."""

from collections.abc import Mapping
import contextlib
import pathlib
import socket
import threading
import time

from nova_fairness import exception

FARTHEST_S = 5.0
"""A counter is carried on at most this far beyond its newest report."""

NEAREST_S = 0.5
"""Reports that were read closer together say nothing of how fast a counter
goes on: they come once a second, so this process was late for the first."""

READY = 'ready'
WORK = 'work'


class GuestLine:
    """The connection to the second serial port of a guest.

    A thread reads what the guest says, so that it never has to wait.

    :param name: of the guest, for messages.
    :param path: of the socket.
    :raises LabError: if nobody listens there.
    """

    def __init__(self, name: str, path: pathlib.Path) -> None:
        self._name = name
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise exception.LabError(
                f'guest {name} has no serial port: {error}'
            ) from None
        self._news = threading.Condition()
        self._answers: list[str] = []
        self._report: Mapping[str, int] = {}
        self._reported_s = 0.0
        self._before: tuple[float, Mapping[str, int]] = (0.0, {})
        self._ready = False
        self._ended = False
        self._sending = threading.Lock()
        self._reader = threading.Thread(
            target=self._read, name=f'line-{name}', daemon=True
        )
        self._reader.start()

    @property
    def report(self) -> Mapping[str, int]:
        """The newest report: counters by name, empty before the first."""
        with self._news:
            return self._report

    def now(self, counter: str) -> int | None:
        """Give what a counter has come to by now.

        Reports come once a second; between them a counter goes on as fast as
        between the last two. Taken as it was reported, it would be up to a
        second old, which is much in a window of ten.

        :returns: ``None`` if it was never reported.
        """
        with self._news:
            newest, reported_s = self._report, self._reported_s
            before_s, before = self._before
        if counter not in newest:
            return None
        if counter not in before or reported_s <= before_s:
            return newest[counter]
        rate = (newest[counter] - before[counter]) / (reported_s - before_s)
        ahead_s = min(time.monotonic() - reported_s, FARTHEST_S)
        return newest[counter] + max(0, round(rate * ahead_s))

    def await_ready(self, patience_s: float) -> bool:
        """Wait until the guest takes commands.

        :returns: whether it did, within ``patience_s`` seconds.
        """
        with self._news:
            self._news.wait_for(lambda: self._ready or self._ended, patience_s)
            return self._ready

    def tell(self, command: str) -> None:
        """Send a command and wait for no answer.

        :raises LabError: if the guest takes none.
        """
        try:
            self._socket.sendall(command.encode() + b'\n')
        except OSError as error:
            raise exception.LabError(
                f'guest {self._name} takes no commands: {error}'
            ) from None

    def ask(self, command: str, patience_s: float) -> list[str]:
        """Send a command and wait until it is done.

        :param patience_s: seconds that it may take.
        :returns: the words that follow the command's name in the answer.
        :raises LabError: if the guest refuses, ends or takes too long.
        """
        verb = command.split()[0]
        with self._sending:
            with self._news:
                self._answers.clear()
            self.tell(command)
            answer = self._await_answer(verb, command, patience_s)
        return answer.split()[2:]

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5.0)
        self._socket.close()

    def _await_answer(self, verb: str, command: str, patience_s: float) -> str:
        deadline = time.monotonic() + patience_s
        with self._news:
            while True:
                for answer in self._answers:
                    if answer.split()[:2] == ['done', verb]:
                        return answer
                    if answer.split()[:2] == ['error', verb]:
                        raise exception.LabError(
                            f'guest {self._name} does not know {command!r}'
                        )
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    how = 'ended' if self._ended else 'did not answer'
                    raise exception.LabError(
                        f'guest {self._name} {how}: {command!r}'
                    )
                self._news.wait(left)

    def _read(self) -> None:
        with self._socket.makefile('r', errors='replace') as lines:
            try:
                for line in lines:
                    self._take(line.strip())
            except OSError:
                pass
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _take(self, line: str) -> None:
        words = line.split()
        with self._news:
            if words == [READY]:
                self._ready = True
            elif words and words[0] == WORK:
                self._take_report(_counters(words))
            elif words:
                self._answers.append(line)
            self._news.notify_all()

    def _take_report(self, counters: Mapping[str, int]) -> None:
        if not counters:
            return
        now_s = time.monotonic()
        if now_s - self._reported_s >= NEAREST_S:
            self._before = (self._reported_s, self._report)
        self._report = counters
        self._reported_s = now_s


def _counters(words: list[str]) -> Mapping[str, int]:
    try:
        pairs = zip(words[::2], words[1::2], strict=True)
        return {name: int(value) for name, value in pairs}
    except ValueError:
        return {}
