# SPDX-License-Identifier: Apache-2.0

"""Progress of a long program on the terminal."""

from collections.abc import Mapping
import sys
import time

from rich import console as rich_console
from rich import progress as rich_progress

_PLAIN_EVERY_S = 10.0
"""Seconds between plain lines, without a terminal."""


class ProgressBar:
    """A moving bar on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self._console = rich_console.Console(
            file=sys.stderr, highlight=False, soft_wrap=True
        )
        self._progress: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)

    def print_line(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        self._console.print(text, markup=False)

    def begin(self, text: str, total: float, *, counts: bool = False) -> None:
        """Show the bar, if there is a terminal.

        :param total: what is done at the end.
        :param counts: whether to show how many of the total are done.
        """
        if not self._console.is_terminal:
            return
        shown = [rich_progress.MofNCompleteColumn()] if counts else []
        self._progress = rich_progress.Progress(
            rich_progress.TextColumn('{task.description}'),
            rich_progress.BarColumn(),
            *shown,
            rich_progress.TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task(text, total=total)
        self._progress.start()

    def move(self, done: float, text: str | None = None) -> bool:
        """Show how much is done; tell whether anybody can see it."""
        if self._progress is None:
            return False
        self._progress.update(self._task, completed=done, description=text)
        return True

    def end(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class BatchProgress:
    """Says how far it is: a moving bar on a terminal, else plain lines."""

    def __init__(self) -> None:
        self._bar = ProgressBar()
        self._title = ''
        self._rounds = 0
        self._last_s = time.monotonic()

    def begin(self, title: str, rounds: int) -> None:
        """Begin a run."""
        self._title, self._rounds = title, rounds
        self._last_s = time.monotonic()
        self._bar.begin(title, rounds, counts=True)

    def tick(self, done: int) -> None:
        """Say that some rounds are done."""
        if self._bar.move(done):
            return
        if time.monotonic() - self._last_s >= _PLAIN_EVERY_S:
            self._last_s = time.monotonic()
            self._bar.print_line(
                f'{self._title}: round {done} of {self._rounds}'
            )

    def end(self) -> None:
        """End the bar."""
        self._bar.end()


class RunProgress:
    """Says what happens: a moving bar on a terminal, else plain lines."""

    def __init__(self) -> None:
        self._bar = ProgressBar()
        self._started = time.monotonic()
        self._last_s = -_PLAIN_EVERY_S

    def print_line(self, text: str) -> None:
        """Say something that happened."""
        elapsed_s = time.monotonic() - self._started
        self._bar.print_line(f'[{elapsed_s:6.1f} s] {text}')

    def begin(self, duration_s: float) -> None:
        """Begin the load."""
        self.print_line(f'load begins, {duration_s:g} s')
        self._bar.begin('load', duration_s)

    def tick(self, t_s: float, parts: Mapping[str, float]) -> None:
        """Say how far it is and who gets how much.

        :param t_s: seconds since the load began.
        :param parts: part of the CPU time by user, 0..1.
        """
        text = ', '.join(
            f'{name} {100 * part:.0f} %' for name, part in parts.items()
        )
        if self._bar.move(t_s, text):
            return
        if t_s - self._last_s >= _PLAIN_EVERY_S:
            self._last_s = t_s
            self.print_line(f'{t_s:5.0f} s of load: {text}')

    def end(self) -> None:
        """End the bar."""
        self._bar.end()
