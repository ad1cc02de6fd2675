# SPDX-License-Identifier: Apache-2.0

"""What a program that takes long shows on the terminal."""

import sys

from rich import console as rich_console
from rich import progress as rich_progress


class Bar:
    """A moving bar where somebody looks at a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self._console = rich_console.Console(
            file=sys.stderr, highlight=False, soft_wrap=True
        )
        self._progress: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)

    def say(self, text: str) -> None:
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
