# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics and notifications of the queue and the relay."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from prometheus_client import registry

from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import moments
from nova_fairness.model import queue as queue_model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.observe import border as border_module
from nova_fairness.observe import families
from nova_fairness.observe import notices
from nova_fairness.observe import plans as plans_module

VERSION = '1.4'
"""Version of the payloads of the queue. The minor version rises when fields
are added.
"""

_S = request_model.State
EVENTS: Mapping[request_model.State, str] = {
    _S.WAITING: 'waiting',
    _S.STARTING: 'released',
    _S.ACTIVE: 'active',
    _S.ENDED: 'ended',
    _S.CANCELLED: 'cancelled',
    _S.EXPIRED: 'expired',
    _S.FAILED: 'failed',
}
"""Event types by the state that a request entered; other states have no
event.
"""


class QueueCollector(registry.Collector):
    """Creates the metrics of the queue at each scrape.

    :param queue: returns the state of the queue; ``None`` in a relay without a
        service.
    :param relay: returns the number of messages by outcome, and whether builds
        are forwarded without holding; ``None`` in a service without a relay.
    :param border: returns the state of moving hosts; ``None`` if no host
        moves.
    :param plans: returns the state of migration plans; ``None`` without plans.
    """

    def __init__(
        self,
        queue: Callable[[], queue_model.Queue] | None,
        relay: Callable[[], tuple[Mapping[str, int], bool]] | None,
        border: Callable[[], border_module.BorderStatus] | None = None,
        plans: Callable[[], plans_module.PlansStatus] | None = None,
    ) -> None:
        self._border = border
        self._plans = plans
        self._queue = queue
        self._relay = relay

    def status(self) -> Mapping[str, Any] | None:
        """Return the answer of ``/status``; ``None`` without a service."""
        if self._queue is None:
            return None
        told = dataclasses.asdict(self._queue())
        told['waiting'] = [
            {'project': project, 'reason': why, 'count': count}
            for (project, why), count in sorted(told['waiting'].items())
        ]
        ended = told['preempted']['ended']
        told['preempted']['ended'] = [
            {'reason': why, 'outcome': outcome, 'count': count}
            for (why, outcome), count in sorted(ended.items())
        ]
        return told

    def collect(self) -> families.Metrics:
        """Yield all metrics; the Prometheus library calls this method."""
        if self._queue is not None:
            queue = self._queue()
            yield from _of_preempted(queue.preempted)
            yield from _of_queue(queue)
            if queue.calibrated:
                yield from _of_estimates(queue.calibrated)
        if self._relay is not None:
            yield from _of_relay(*self._relay())
        if self._border is not None:
            yield from border_module.metrics(self._border())
        if self._plans is not None:
            yield from plans_module.metrics(self._plans())


def _numbers(**amounts: float) -> families.Metrics:
    """Yield a metric without labels for each amount."""
    for name, amount in amounts.items():
        yield families.metric(f'queue_{name}', [((), amount)])


def _of_queue(queue: queue_model.Queue) -> families.Metrics:
    yield from _numbers(
        cycles=queue.cycles,
        cycles_failed=queue.cycles_failed,
        waited_seconds=queue.waited_s,
        leads_bool=queue.leads,
        clocks_disagree_bool=queue.clocks_disagree,
    )
    for name, counts in (
        ('requests', queue.entered),
        ('leaving_servers', queue.left),
        ('warned_servers', queue.warned),
        ('failures', queue.failures),
        ('quarantined', queue.quarantined),
    ):
        rows = [((label,), n) for label, n in sorted(counts.items())]
        yield families.metric(f'queue_{name}', rows)
    if queue.leads:
        yield from _of_leader(queue)


def _of_leader(queue: queue_model.Queue) -> families.Metrics:
    yield families.metric(
        'queue_waiting_requests', sorted(queue.waiting.items())
    )
    yield from _numbers(
        doubtful_requests=queue.doubtful,
        idle_servers=queue.idle,
        accounts_set_aside=len(queue.accounts_set_aside),
        agents_unlike=len(queue.agents_unlike),
        at_risk_servers=queue.at_risk,
        delayed_projects=queue.delayed,
    )
    for name, at in (('snapshot', queue.seen_at), ('oldest', queue.oldest_at)):
        yield families.metric(
            f'queue_{name}_timestamp_seconds', [] if at is None else [((), at)]
        )


def _of_preempted(
    preempted: queue_model.PreemptionOutcomes,
) -> families.Metrics:
    yield families.metric('queue_preemptions', sorted(preempted.ended.items()))
    yield from _numbers(
        preemptions_notice_seconds=preempted.notice_s,
        preemptions_lost_vcpu_seconds=preempted.lost_vcpu_s,
        served_by_room_requests=preempted.served,
        served_by_room_seconds=preempted.served_s,
    )


def _of_estimates(judged: cluster.EstimateQuality) -> families.Metrics:
    yield from _numbers(estimates_judged=judged.count)
    yield families.metric(
        'queue_estimates_kept_ratio',
        [(('p50',), judged.by_p50), (('p90',), judged.by_p90)],
    )
    yield families.metric(
        'queue_estimates_late_seconds',
        [(('p50',), judged.off_s), (('p90',), judged.late_s)],
    )


def _of_relay(counts: Mapping[str, int], is_open: bool) -> families.Metrics:
    yield families.metric(
        'relay_messages', [((name,), n) for name, n in sorted(counts.items())]
    )
    yield families.metric('relay_lets_through_bool', [((), is_open)])


_MEMBER = reason.Audience.MEMBER


def notice(
    request: request_model.Request,
    why: reason.Why,
    now: float,
    host: str,
    audience: reason.Audience = _MEMBER,
) -> notices.Notice | None:
    """Return the notification of the state that a request entered, if the
    state has an event.

    :param why: reason of the request.
    :param now: seconds of the epoch.
    :param host: name of the host of this process.
    :param audience: audience of notifications.
    """
    event = EVENTS.get(request.state)
    if event is None:
        return None
    bad = request.state in (_S.FAILED, _S.EXPIRED)
    return notices.Notice(
        f'fairness.request.{event}',
        notices.WARN if bad else notices.INFO,
        {
            'version': VERSION,
            'host': host,
            'at': moments.stamp(now),
            **queue_model.request_facts(request, why, audience),
            'asked_at': moments.stamp(request.asked_at),
        },
    )


def eviction_notice(
    leave: eviction.Eviction, host: str, audience: reason.Audience = _MEMBER
) -> notices.Notice:
    """Return the notification of the state that an eviction entered.

    :param host: name of the host of this process.
    :param audience: audience of notifications.
    """
    stays = leave.state is eviction.EvictionState.STAYS
    return notices.Notice(
        f'fairness.server.{leave.state.value}',
        notices.WARN if stays else notices.INFO,
        {
            **queue_model.eviction_facts_with_outcome(leave, audience),
            'version': VERSION,
            'host': host,
            'at': moments.stamp(leave.changed_at),
        },
    )


def risk_notice(
    known: risk.EvictionRisk, host: str, audience: reason.Audience = _MEMBER
) -> notices.Notice:
    """Return the notification that a server is at risk, or no longer at risk.

    :param host: name of the host of this process.
    :param audience: audience of notifications.
    """
    return notices.Notice(
        f'fairness.server.{known.state.value}',
        notices.INFO,
        {
            'version': VERSION,
            'host': host,
            'at': moments.stamp(known.changed_at),
            'project_id': known.project,
            'user_id': known.user,
            **queue_model.risk_facts(known, audience),
        },
    )
