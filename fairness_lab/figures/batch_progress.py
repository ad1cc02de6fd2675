# SPDX-License-Identifier: Apache-2.0


"""What a simulation says on the terminal while it goes on."""

import time

from fairness_lab.figures import progress

_PLAIN_EVERY_S = 10.0


class Progress:
    """Says how far it is: a moving bar on a terminal, else plain lines."""

    def __init__(self) -> None:
        self._bar = progress.Bar()
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
            self._bar.say(f'{self._title}: round {done} of {self._rounds}')

    def end(self) -> None:
        """End the bar."""
        self._bar.end()
