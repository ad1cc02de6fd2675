# SPDX-License-Identifier: Apache-2.0

"""Sends the newest message from a thread of its own."""

from collections.abc import Callable
import threading
from typing import Any

from nova_fairness.runtime import quiet_log as tally_module

_JOIN_S = 2.0
"""How long the end of a thread that may hang in a transport is awaited."""


class Sender:
    """A place for one message, and a thread that empties it.

    A transport that hangs holds up this thread and nobody else; what was not
    sent when something newer comes is given up.

    :param send: blocks as long as it likes, raises what it likes.
    :param tally: counts ``sent``, ``send_failed`` and ``replaced``.
    :param log: where failures are told.
    """

    def __init__(
        self,
        send: Callable[[Any], None],
        tally: tally_module.Tally,
        log: tally_module.QuietLog,
    ) -> None:
        self._send = send
        self._tally = tally
        self._log = log
        self._changed = threading.Condition()
        self._message: Any = None
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name='exchange-sender', daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, message: Any) -> None:
        """Replace the message that waits by a new one; returns at once."""
        with self._changed:
            if self._message is not None:
                self._tally.add('replaced')
            self._message = message
            self._changed.notify()

    def stop(self) -> None:
        """End the thread; one that hangs in the transport is left behind."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (message := self._next()) is not None:
            try:
                self._send(message)
            except Exception as error:  # noqa: BLE001 # of any transport
                self._tally.add('send_failed')
                self._log.warning(
                    'send', '', f'The report was not sent: {error}'
                )
            else:
                self._tally.add('sent')

    def _next(self) -> Any:
        """Wait for a message; ``None`` says that it is over."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._message is not None
            )
            if self._stopping:
                return None
            message, self._message = self._message, None
            return message
