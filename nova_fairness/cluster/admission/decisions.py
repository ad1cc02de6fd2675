# SPDX-License-Identifier: Apache-2.0

"""Lines of the debug log about the decisions of the planner."""

from collections.abc import Iterator
from collections.abc import Mapping
import logging

from nova_fairness.model import cluster

LOG = logging.getLogger(__name__)


class DecisionLog:
    """Logs the differences between a plan and the plan before it.

    A request that moves up because others started leaves no line.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, cluster.Waiting] = {}

    def log(self, plan: cluster.Plan) -> None:
        """Log each action, and each new reason, later position or new
        reservation.

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
    """Texts about the changes of a waiting request since the plan before."""
    if before is None or before.why.reason is not now.why.reason:
        yield f'waits at position {now.position}: {now.why.sentence}'
    elif now.position > before.position:
        yield f'moved back from position {before.position} to {now.position}'
    reserved = now.reserved
    if reserved != (before.reserved if before else None):
        hosts = ', '.join(reserved.hosts) if reserved else 'none'
        yield f'hosts with reserved room: {hosts}'
