# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""What a simulation says on the terminal while it goes on."""

import sys
import time

from rich import console as rich_console
from rich import progress as rich_progress

_PLAIN_EVERY_S = 10.0


class Progress:
    """Says how far it is: a moving bar on a terminal, else plain lines."""

    def __init__(self) -> None:
        self._console = rich_console.Console(
            file=sys.stderr, highlight=False, soft_wrap=True
        )
        self._bar: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)
        self._title = ''
        self._rounds = 0
        self._last_s = time.monotonic()

    def begin(self, title: str, rounds: int) -> None:
        """Begin a run."""
        self._title, self._rounds = title, rounds
        self._last_s = time.monotonic()
        if not self._console.is_terminal:
            return
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn('{task.description}'),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task(title, total=rounds)
        self._bar.start()

    def tick(self, done: int) -> None:
        """Say that some rounds are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif time.monotonic() - self._last_s >= _PLAIN_EVERY_S:
            self._last_s = time.monotonic()
            self._console.print(
                f'{self._title}: round {done} of {self._rounds}', markup=False
            )

    def end(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
