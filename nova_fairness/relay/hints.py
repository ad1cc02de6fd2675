# SPDX-License-Identifier: Apache-2.0

"""Nova's notifications, used as hints that the cloud may have changed.

Hints may be lost, delayed, repeated or reordered. The receiver of a hint
therefore reads the cloud itself, and also without hints.
"""

from collections.abc import Callable
import re
import threading

from nova_fairness.relay import jobs
from nova_fairness.relay import link as link_module
from nova_fairness.relay import topology

_TOPIC = 'versioned_notifications'

_NEWS = re.compile(
    rb'event_type\W+(?:service\.\w+'
    rb'|(?:aggregate|compute_task|instance)\.[a-z_.]+\.(?:end|error))\W'
)
"""Events that may have freed or allocated room. Messages are JSON in JSON; a
false match does no harm.
"""


class HintListener(jobs.QueueJob):
    """Passes hints to a function, and leaves notifications to other consumers.

    It has its own queue, which the broker deletes with the connection.

    :param hint: called for each hint; it must return at once.
    """

    def __init__(
        self,
        url: str,
        places: topology.Places,
        stopped: threading.Event,
        hint: Callable[[], None],
    ) -> None:
        super().__init__(url, places, stopped)
        self._hint = hint

    @property
    def queue(self) -> str:
        """The queue of received notifications."""
        return _TOPIC

    def begin(self, link: link_module.Link) -> None:
        """Start to receive notifications that are sent from now on."""
        link.overhear(self._places.target, f'{_TOPIC}.#', self.prefetch)

    def process(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Process one notification: call the hint function."""
        if _NEWS.search(delivery.body):
            self._hint()
