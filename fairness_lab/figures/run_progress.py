# SPDX-License-Identifier: Apache-2.0

"""What a run says on the terminal while it goes on."""

from collections.abc import Mapping
import time

from fairness_lab.figures import progress

_PLAIN_EVERY_S = 10.0


class Progress:
    """Says what happens: a moving bar on a terminal, else plain lines."""

    def __init__(self) -> None:
        self._bar = progress.Bar()
        self._started = time.monotonic()
        self._last_s = -_PLAIN_EVERY_S

    def say(self, text: str) -> None:
        """Say something that happened."""
        elapsed_s = time.monotonic() - self._started
        self._bar.say(f'[{elapsed_s:6.1f} s] {text}')

    def begin(self, duration_s: float) -> None:
        """Begin the load."""
        self.say(f'load begins, {duration_s:g} s')
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
            self.say(f'{t_s:5.0f} s of load: {text}')

    def end(self) -> None:
        """End the bar."""
        self._bar.end()
