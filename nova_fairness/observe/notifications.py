# SPDX-License-Identifier: Apache-2.0

"""Delivery of notifications with oslo.messaging, if it is configured."""

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
"""Seconds for which the agent sends waiting notifications when it stops."""

Send = Callable[[notices.Notice], None]
"""Sends one notification. It may block, and may raise any exception."""


class Postman:
    """Thread that sends notifications from a bounded queue.

    :param send: sends one notification.
    :param most: largest number of waiting notifications; more are dropped.
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
        """Start the thread."""
        self._thread.start()

    def post(self, given: Iterable[notices.Notice]) -> None:
        """Add notifications to the queue without blocking."""
        for item in given:
            try:
                self._waiting.put_nowait(item)
                self._is_full = False
            except queue.Full:
                self._dropped += 1
                if not self._is_full:
                    LOG.warning(
                        'Notifications: some are dropped: the queue of %d is'
                        ' full; check the broker of notifications',
                        self._waiting.maxsize,
                    )
                self._is_full = True

    def statistics(self) -> Mapping[str, int]:
        """Return the number of ``sent`` and ``dropped`` notifications."""
        return {'sent': self._sent, 'dropped': self._dropped}

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Stop the thread in bounded time; notifications that still wait are
        lost.

        :param timeout_s: seconds to wait until the queue is empty.
        """
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            LOG.warning(
                'Notifications: the last ones are not sent: the queue is full'
            )
            return
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                self._send(item)
            except Exception:
                # The next notification may succeed.
                LOG.exception('Notification %s: not sent', item.event)
                self._dropped += 1
            else:
                self._sent += 1


LOG = logging.getLogger(__name__)

_SENDING = ('messaging', 'messagingv2', 'routing')
"""Notification drivers that need a transport."""


class NoNotifications:
    """Consumer of rounds that sends no notifications: the default of an
    agent.
    """

    def start(self) -> None:
        """Start to send."""

    def add(
        self, done: round_model.Round, max_ratios: usage_model.Scalars
    ) -> None:
        """Process a round without blocking.

        :param max_ratios: (c,) largest weight divided by the smallest, by
            control.
        """

    def statistics(self) -> Mapping[str, int]:
        """Return the number of ``sent`` and ``dropped`` notifications."""
        return {'sent': 0, 'dropped': 0}

    def stop(self) -> None:
        """Stop in bounded time."""


class RoundNotifications(NoNotifications):
    """Sends notifications about the differences between rounds.

    :param watch: compares rounds.
    :param postman: sends the notifications.
    """

    def __init__(self, watch: notices.RoundWatch, postman: Postman) -> None:
        self._watch = watch
        self._postman = postman

    def start(self) -> None:
        """Start to send."""
        self._postman.start()

    def add(
        self, done: round_model.Round, max_ratios: usage_model.Scalars
    ) -> None:
        """Process a round without blocking.

        :param max_ratios: (c,) largest weight divided by the smallest, by
            control.
        """
        self._postman.post(
            self._watch.notices(done, 1.0 / np.sqrt(max_ratios))
        )

    def statistics(self) -> Mapping[str, int]:
        """Return the number of ``sent`` and ``dropped`` notifications."""
        return self._postman.statistics()

    def stop(self) -> None:
        """Stop in bounded time."""
        self._postman.stop()


MOST_WAITING = 10_000
"""Largest number of waiting notifications; more are dropped and counted.

It bridges some minutes without a broker, in a few MB of memory.
"""


def configured_notifications(conf: cfg.ConfigOpts) -> NoNotifications:
    """Create the sender of an agent's notifications, as configured.

    :raises ConfigurationError: if the configuration is not usable.
    """
    made = postman(conf, f'nova-fairness.{conf.fairness.host}')
    if made is None:
        return NoNotifications()
    return RoundNotifications(notices.RoundWatch(), made)


def postman(conf: cfg.ConfigOpts, publisher: str) -> Postman | None:
    """Create the sender for ``[oslo_messaging_notifications]``.

    The thread is not started, and no connection is opened.

    :param publisher: ID of the publisher of the notifications.
    :returns: ``None`` without a driver.
    :raises ConfigurationError: if the configuration is not usable.
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
