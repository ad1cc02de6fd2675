# SPDX-License-Identifier: Apache-2.0

"""What happens to requests, counted and told."""

import collections
from collections.abc import Callable
from collections.abc import Iterable

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import leaving
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.observe import notices
from nova_fairness.observe import queue as queue_observe

_R = reason.Reason
_S = request_model.State


class Watch:
    """Sees every change that this process makes of a request.

    :param store: where changes are made.
    :param service: that makes them.
    :param post: takes what is told; it never waits.
    :param host: that tells it.
    """

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        post: Callable[[Iterable[notices.Notice]], None],
        host: str,
    ) -> None:
        self._service = service
        self._post = post
        self._host = host
        self._waited_s = 0.0
        self._entered: collections.Counter[str] = collections.Counter(
            dict.fromkeys((each.value for each in queue_observe.EVENTS), 0)
        )
        self._left: collections.Counter[str] = collections.Counter(
            dict.fromkeys((each.value for each in leaving.State), 0)
        )
        store.listen(self._changed)
        store.leaves.listen(self._leaves)

    def queue(self) -> queue.Queue:
        """The requests as the last cycle left them."""
        last, leads = None, True
        try:
            last = self._service.last()
        except exception.NotLeading:
            leads = False
        waiting: collections.Counter[tuple[str, str]] = collections.Counter()
        asked, doubtful = [], 0
        for record in last.records if last else ():
            request, why = record.request, record.why.reason
            planned = last.plan.waiting.get(request.uuid) if last else None
            unread = request.state is _S.HELD and why is _R.UNREADABLE
            if planned or unread:
                why = planned.why.reason if planned else why
                waiting[request.project, why.value] += 1
                asked.append(request.asked_at)
            elif request.state is _S.SENDING or why is _R.IN_DOUBT:
                doubtful += 1
        return queue.Queue(
            leads=leads,
            seen_at=last.at if last else None,
            waiting=waiting,
            oldest_at=min(asked, default=None),
            doubtful=doubtful,
            entered=dict(self._entered),
            waited_s=self._waited_s,
            left=dict(self._left),
            cycles=self._service.cycles,
            cycles_failed=self._service.cycles_failed,
            calibrated=last.calibrated if last else None,
        )

    def _leaves(self, leave: leaving.Leave) -> None:
        self._left[leave.state.value] += 1
        self._post([queue_observe.leave_notice(leave, self._host)])

    def _changed(
        self, request: request_model.Request, why: reason.Why, now: float
    ) -> None:
        told = queue_observe.notice(request, why, now, self._host)
        if told is None or (request.state is _S.HELD and request.version):
            # One that waits again was told when it came.
            return
        self._entered[request.state.value] += 1
        if request.state is _S.STARTING:
            self._waited_s += max(now - request.asked_at, 0.0)
        self._post([told])
