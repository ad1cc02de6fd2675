# SPDX-License-Identifier: Apache-2.0

"""Sends notifications beside the rounds, and drops what is too many."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import logging
import queue
import threading

from nova_fairness.observe import notices

LOG = logging.getLogger(__name__)

_STOP_S = 2.0
"""For what is still to be sent when the agent ends."""

Send = Callable[[notices.Notice], None]
"""May take as long as it wants, and may raise anything."""


class Postman:
    """A thread with a bounded queue.

    :param send: hands one notification over.
    :param most: notifications that wait at most; more are dropped.
    """

    def __init__(self, send: Send, most: int) -> None:
        self._send = send
        self._waiting: queue.Queue[notices.Notice | None] = queue.Queue(most)
        self._sent = 0
        self._dropped = 0
        self._is_full = False
        self._thread = threading.Thread(
            target=self._run, name='notifications', daemon=True
        )

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def post(self, given: Iterable[notices.Notice]) -> None:
        """Leave notifications to be sent; never waits."""
        for item in given:
            try:
                self._waiting.put_nowait(item)
                self._is_full = False
            except queue.Full:
                self._dropped += 1
                if not self._is_full:
                    LOG.warning(
                        'Notifications are dropped: %d wait to be sent',
                        self._waiting.maxsize,
                    )
                self._is_full = True

    def statistics(self) -> Mapping[str, int]:
        """Count what was ``sent`` and what was ``dropped``."""
        return {'sent': self._sent, 'dropped': self._dropped}

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """End in bounded time; what is not sent by then is lost.

        :param timeout_s: seconds to wait for what still is to be sent.
        """
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            LOG.warning('Notifications that still wait are not sent')
            return
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                self._send(item)
            except Exception:
                # Whatever it was, the next may be sent.
                LOG.exception('%s was not sent', item.event)
                self._dropped += 1
            else:
                self._sent += 1
