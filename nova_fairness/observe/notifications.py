# SPDX-License-Identifier: Apache-2.0

"""Notifications over oslo.messaging, if an operator wants them."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import logging
import queue
import threading

import numpy as np
from oslo_config import cfg
import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.observe import notices

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
        """End in bounded time; notifications that still wait are lost.

        :param timeout_s: seconds to wait for notifications that still wait.
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


LOG = logging.getLogger(__name__)

_SENDING = ('messaging', 'messagingv2', 'routing')
"""Drivers of notifications that need a transport."""


class Notifying:
    """Sends nothing: the default of an agent."""

    def start(self) -> None:
        """Begin to send."""

    def add(
        self, done: round_model.Round, max_ratios: usage_model.Scalars
    ) -> None:
        """Take over a round; never waits.

        :param max_ratios: (c,) of the largest to the smallest weight.
        """

    def statistics(self) -> Mapping[str, int]:
        """Count what was ``sent`` and what was ``dropped``."""
        return {'sent': 0, 'dropped': 0}

    def stop(self) -> None:
        """End in bounded time."""


class MessageNotifying(Notifying):
    """Tells what changed from round to round.

    :param watch: says what that is.
    :param postman: sends it.
    """

    def __init__(self, watch: notices.RoundWatch, postman: Postman) -> None:
        self._watch = watch
        self._postman = postman

    def start(self) -> None:
        """Begin to send."""
        self._postman.start()

    def add(
        self, done: round_model.Round, max_ratios: usage_model.Scalars
    ) -> None:
        """Take over a round; never waits."""
        self._postman.post(
            self._watch.notices(done, 1.0 / np.sqrt(max_ratios))
        )

    def statistics(self) -> Mapping[str, int]:
        """Count what was ``sent`` and what was ``dropped``."""
        return self._postman.statistics()

    def stop(self) -> None:
        """End in bounded time."""
        self._postman.stop()


MOST_WAITING = 10_000
"""Notifications that wait to be sent; a surplus is dropped and counted.

It rides out minutes of a broker that is away, in a few MB.
"""


def connect(conf: cfg.ConfigOpts) -> Notifying:
    """Prepare what an agent tells.

    :raises ConfigurationError: if it cannot be used.
    """
    made = postman(conf, f'nova-fairness.{conf.fairness.host}')
    if made is None:
        return Notifying()
    return MessageNotifying(notices.RoundWatch(), made)


def postman(conf: cfg.ConfigOpts, publisher: str) -> Postman | None:
    """Prepare the sender of ``[oslo_messaging_notifications]``.

    Nothing is started, and no connection made.

    :param publisher: who tells.
    :returns: ``None`` if none are wanted.
    :raises ConfigurationError: if it cannot be used.
    """
    group = conf.oslo_messaging_notifications
    drivers = [name for name in group.driver if name not in ('', 'noop')]
    if not drivers:
        return None
    url = group.transport_url or conf.transport_url
    if not url and set(drivers) & set(_SENDING):
        raise exception.ConfigurationError(
            f'[oslo_messaging_notifications] driver = {", ".join(drivers)} '
            'needs a transport_url, there or in [DEFAULT]'
        )
    try:
        notifier = oslo_messaging.Notifier(
            oslo_messaging.get_notification_transport(conf, url or 'fake:'),
            publisher_id=publisher,
        )
    except (oslo_messaging.MessagingException, ValueError) as error:
        raise exception.ConfigurationError(
            f'[oslo_messaging_notifications] cannot be used: {error}'
        ) from error
    LOG.info('Notifications are sent with %s', ', '.join(drivers))
    return Postman(lambda item: _send(notifier, item), MOST_WAITING)


def _send(notifier: oslo_messaging.Notifier, item: notices.Notice) -> None:
    tell = notifier.warn if item.priority == notices.WARN else notifier.info
    tell({}, item.event, dict(item.payload))
