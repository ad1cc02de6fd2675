# SPDX-License-Identifier: Apache-2.0

"""Debug log of the planner's decisions."""

from collections.abc import Iterator
from collections.abc import Mapping
import logging

from nova_fairness.model import cluster

LOG = logging.getLogger(__name__)


class DecisionLog:
    """Logs the differences between a plan and the previous plan.

    A request whose position only improves is not logged.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, cluster.Waiting] = {}

    def log(self, plan: cluster.Plan) -> None:
        """Log each action of a plan, and each new reason, worse position or
        new reservation of a waiting request.

        :param plan: the newest plan.
        """
        if not LOG.isEnabledFor(logging.DEBUG):
            self._last = {}
            return
        for each in plan.actions:
            LOG.debug(
                'request %s: %s: %s; hosts: %s',
                *(each.request, each.verb.value, each.why.sentence),
                ', '.join(each.hosts) or 'none',
            )
        for uuid, waiting in plan.waiting.items():
            for change in _change_texts(self._last.get(uuid), waiting):
                LOG.debug('request %s: %s', uuid, change)
        self._last = dict(plan.waiting)


def _change_texts(
    before: cluster.Waiting | None, now: cluster.Waiting
) -> Iterator[str]:
    """Yield one text for each change of a waiting request since the previous
    plan.

    :param before: the request in the previous plan; ``None`` if it is new.
    :param now: the request in the newest plan.
    """
    if before is None or before.why.reason is not now.why.reason:
        yield f'waits at position {now.position}: {now.why.sentence}'
    elif now.position > before.position:
        yield f'moved back from position {before.position} to {now.position}'
    reserved = now.reserved
    if reserved != (before.reserved if before else None):
        hosts = ', '.join(reserved.hosts) if reserved else 'none'
        yield f'hosts with reserved room: {hosts}'
