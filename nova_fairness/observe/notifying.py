# SPDX-License-Identifier: Apache-2.0

"""Notifications over oslo.messaging, if an operator wants them."""

from collections.abc import Mapping
import logging

import numpy as np
from oslo_config import cfg
import oslo_messaging

from nova_fairness import exception
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.observe import notices
from nova_fairness.observe import postman as postman_module

LOG = logging.getLogger(__name__)

_SENDING = ('messaging', 'messagingv2', 'routing')
"""Drivers of notifications that need a transport."""


class Notifying:
    """Tells nobody anything: what an agent does unless it is asked for."""

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

    def __init__(
        self, watch: notices.Watch, postman: postman_module.Postman
    ) -> None:
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


def connect(conf: cfg.ConfigOpts) -> Notifying:
    """Prepare what ``[oslo_messaging_notifications]`` says.

    Nothing is started, and no connection made.

    :raises ConfigurationError: if it cannot be used.
    """
    group = conf.oslo_messaging_notifications
    drivers = [name for name in group.driver if name not in ('', 'noop')]
    if not drivers:
        return Notifying()
    url = group.transport_url or conf.transport_url
    if not url and set(drivers) & set(_SENDING):
        raise exception.ConfigurationError(
            f'[oslo_messaging_notifications] driver = {", ".join(drivers)} '
            'needs a transport_url, there or in [DEFAULT]'
        )
    try:
        notifier = oslo_messaging.Notifier(
            oslo_messaging.get_notification_transport(conf, url or 'fake:'),
            publisher_id=f'nova-fairness.{conf.fairness.host}',
        )
    except (oslo_messaging.MessagingException, ValueError) as error:
        raise exception.ConfigurationError(
            f'[oslo_messaging_notifications] cannot be used: {error}'
        ) from error
    observe = conf.fairness_observe
    LOG.info('Notifications are sent with %s', ', '.join(drivers))
    return MessageNotifying(
        notices.Watch(observe.throttled_weight),
        postman_module.Postman(
            lambda item: _send(notifier, item), observe.notification_queue
        ),
    )


def _send(notifier: oslo_messaging.Notifier, item: notices.Notice) -> None:
    tell = notifier.warn if item.priority == notices.WARN else notifier.info
    tell({}, item.event, dict(item.payload))
