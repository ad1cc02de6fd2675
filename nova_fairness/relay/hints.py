# SPDX-License-Identifier: Apache-2.0

"""Nova's notifications, used as hints that the cloud may have changed.

Hints may get lost, come late, twice or in another order. So the receiver of a
hint looks for itself, and looks without hints, too.
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
"""Events that may have freed or taken room. Messages are JSON in JSON; a false
match does no harm.
"""


class HintListener(jobs.QueueJob):
    """Passes hints on, and takes no notification away from other consumers.

    It has its own queue, which the broker removes with the connection.

    :param hint: called for each hint; it returns at once.
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
        """The queue that it listens to."""
        return _TOPIC

    def begin(self, link: link_module.Link) -> None:
        """Begin to receive notifications that are sent from now on."""
        link.overhear(self._places.target, f'{_TOPIC}.#', self.prefetch)

    def do(
        self, link: link_module.Link, delivery: link_module.Delivery
    ) -> None:
        """Pass a hint on."""
        if _NEWS.search(delivery.body):
            self._hint()
