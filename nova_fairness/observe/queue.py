# SPDX-License-Identifier: Apache-2.0

"""Requests that wait, and the relay, as Prometheus metrics and notices."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import datetime as dt
from typing import Any

from prometheus_client import registry

from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import queue as queue_model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.observe import border as border_module
from nova_fairness.observe import families
from nova_fairness.observe import notices
from nova_fairness.observe import plans as plans_module

VERSION = '1.3'
"""Of the payloads of the queue. Minor: fields were added."""

_S = request_model.State
EVENTS: Mapping[request_model.State, str] = {
    _S.HELD: 'held',
    _S.STARTING: 'released',
    _S.ACTIVE: 'active',
    _S.ENDED: 'ended',
    _S.CANCELLED: 'cancelled',
    _S.EXPIRED: 'expired',
    _S.FAILED: 'failed',
}
"""Events by the state that a request came into; others have none."""


class QueueCollector(registry.Collector):
    """Makes the numbers at each scrape.

    :param queue: asked at every scrape; ``None`` for a relay alone.
    :param relay: counts of messages by their outcome, and whether builds are
        let through; ``None`` for a service alone.
    :param border: asked at every scrape; ``None`` if no host moves.
    :param plans: asked at every scrape; ``None`` if no server moves.
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
        """The answer of ``/status``; ``None`` without a service."""
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
        """All metrics; called by the Prometheus library."""
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


def _numbers(*told: tuple[str, str, float]) -> families.Metrics:
    """A gauge without labels for each name, text and amount."""
    for name, text, amount in told:
        yield families.gauge(f'queue_{name}', text, (), [((), amount)])


def _of_queue(queue: queue_model.Queue) -> families.Metrics:
    for name, text, amount in (
        ('cycles', 'Cycles of the cluster service.', queue.cycles),
        (
            'cycles_failed',
            'Cycles that ended early or left a part out.',
            queue.cycles_failed,
        ),
        ('waited_seconds', 'Waits of released requests.', queue.waited_s),
    ):
        yield families.counter(f'queue_{name}', text, [((), amount)])
    for name, text, states in (
        ('requests', 'Requests that came into a state.', queue.entered),
        (
            'leaving_servers',
            'Servers that came into a state on their way out.',
            queue.left,
        ),
        (
            'warned_servers',
            'Servers that were told that they are at risk, or no longer.',
            queue.warned,
        ),
    ):
        rows = [((state,), n) for state, n in sorted(states.items())]
        yield families.counter(f'queue_{name}', text, rows, ('state',))
    yield from _of_failures(queue)
    yield from _numbers(
        (
            'leads_bool',
            'Whether this process decides what starts.',
            queue.leads,
        ),
        (
            'clocks_disagree_bool',
            'Whether clocks disagree, so that nothing expires or leaves.',
            queue.clocks_disagree,
        ),
    )
    if queue.leads:
        yield from _of_leader(queue)


def _of_failures(queue: queue_model.Queue) -> families.Metrics:
    yield families.counter(
        'queue_failures',
        'Inputs on which the service failed, by what they are.',
        sorted(((kind,), n) for kind, n in queue.failures.items()),
        ('kind',),
    )
    yield families.gauge(
        'queue_quarantined',
        'Inputs that are set aside, since the service failed on them.',
        ('kind',),
        sorted(((kind,), n) for kind, n in queue.quarantined.items()),
    )


def _of_leader(queue: queue_model.Queue) -> families.Metrics:
    yield families.gauge(
        'queue_waiting_requests',
        'Requests that wait, by project and reason.',
        ('project', 'reason'),
        sorted(queue.waiting.items()),
    )
    yield from _numbers(
        (
            'doubtful_requests',
            'Requests in doubt: it is not known whether Nova has them.',
            queue.doubtful,
        ),
        (
            'idle_servers',
            'Servers that did next to nothing for as long as they may.',
            queue.idle,
        ),
        (
            'accounts_set_aside',
            'Accounts with a setting that cannot be used.',
            len(queue.accounts_set_aside),
        ),
        (
            'agents_unlike',
            'Agents that say of use what others do not say.',
            len(queue.agents_unlike),
        ),
        (
            'at_risk_servers',
            'Servers that are told that they are among the next to make room.',
            queue.at_risk,
        ),
        (
            'delayed_projects',
            'Projects for which no servers leave now: others left in vain.',
            queue.delayed,
        ),
    )
    for name, text, at in (
        ('snapshot', 'When the cloud was looked at last.', queue.seen_at),
        ('oldest', 'Since when the oldest one waits.', queue.oldest_at),
    ):
        yield families.gauge(
            f'queue_{name}_timestamp_seconds',
            f'{text[:-1]}, seconds since the epoch.',
            (),
            [] if at is None else [((), at)],
        )


def _of_preempted(
    preempted: queue_model.PreemptionOutcomes,
) -> families.Metrics:
    yield families.counter(
        'queue_preemptions',
        'Victims of preemptions, by outcome.',
        sorted(preempted.ended.items()),
        ('reason', 'outcome'),
    )
    for name, text, amount in (
        (
            'preemptions_notice_seconds',
            'Notices of those that were not spared.',
            preempted.notice_s,
        ),
        (
            'preemptions_lost_vcpu_seconds',
            'VCPUs times seconds that they had run.',
            preempted.lost_vcpu_s,
        ),
        (
            'served_by_room_requests',
            'Requests that room was made for and that are active.',
            preempted.served,
        ),
        (
            'served_by_room_seconds',
            'Times from the choice of who leaves until they were.',
            preempted.served_s,
        ),
    ):
        yield families.counter(f'queue_{name}', text, [((), amount)])


def _of_estimates(judged: cluster.EstimateQuality) -> families.Metrics:
    yield families.gauge(
        'queue_estimates_judged',
        'Estimates of starts whose outcome is known.',
        (),
        [((), judged.count)],
    )
    yield families.gauge(
        'queue_estimates_kept_ratio',
        'Part of these requests that started by their p50 or p90.',
        ('estimate',),
        [(('p50',), judged.by_p50), (('p90',), judged.by_p90)],
    )
    yield families.gauge(
        'queue_estimates_late_seconds',
        'How long after p50 they started (median), and after p90 (ninth'
        ' decile).',
        ('estimate',),
        [(('p50',), judged.off_s), (('p90',), judged.late_s)],
    )


def _of_relay(counts: Mapping[str, int], is_open: bool) -> families.Metrics:
    yield families.counter(
        'relay_messages',
        'Messages of nova-api, by outcome.',
        [((name,), n) for name, n in sorted(counts.items())],
        ('outcome',),
    )
    yield families.gauge(
        'relay_lets_through_bool',
        'Whether builds pass unheld: the cluster service is away.',
        (),
        [((), is_open)],
    )


_MEMBER = reason.Audience.MEMBER


def notice(
    request: request_model.Request,
    why: reason.Why,
    now: float,
    host: str,
    audience: reason.Audience = _MEMBER,
) -> notices.Notice | None:
    """Notice of a request that came into its state, if that has an event.

    :param now: seconds of the epoch.
    :param host: that tells it.
    :param audience: of those who read notifications.
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
            'at': _time(now),
            **queue_model.facts(request, why, audience),
            'asked_at': _time(request.asked_at),
        },
    )


def leave_notice(
    leave: eviction.Eviction, host: str, audience: reason.Audience = _MEMBER
) -> notices.Notice:
    """Notice of a server that came into a state on its way out.

    :param host: that tells it.
    :param audience: of those who read notifications.
    """
    stays = leave.state is eviction.EvictionState.STAYS
    return notices.Notice(
        f'fairness.server.{leave.state.value}',
        notices.WARN if stays else notices.INFO,
        {
            **queue_model.turn_facts(leave, audience),
            'version': VERSION,
            'host': host,
            'at': _time(leave.changed_at),
        },
    )


def risk_notice(
    known: risk.Risk, host: str, audience: reason.Audience = _MEMBER
) -> notices.Notice:
    """Notice of a server that is at risk from now on, or no longer.

    :param host: that tells it.
    :param audience: of those who read notifications.
    """
    return notices.Notice(
        f'fairness.server.{known.state.value}',
        notices.INFO,
        {
            'version': VERSION,
            'host': host,
            'at': _time(known.changed_at),
            'project_id': known.project,
            'user_id': known.user,
            **queue_model.risk_facts(known, audience),
        },
    )


def _time(at_s: float) -> str:
    at = dt.datetime.fromtimestamp(at_s, dt.UTC)
    return at.strftime('%Y-%m-%dT%H:%M:%SZ')
