# SPDX-License-Identifier: Apache-2.0

"""Notifications and counters of the events of requests, hosts and migration
plans.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from nova_fairness import exception
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.border import controller
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import border as border_module
from nova_fairness.model import eviction
from nova_fairness.model import plans as plans_model
from nova_fairness.model import queue
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.model import risk
from nova_fairness.observe import border as border_observe
from nova_fairness.observe import notices
from nova_fairness.observe import plans as plans_observe
from nova_fairness.observe import queue as queue_observe

_R = reason.Reason
_S = request_model.State


class BorderWatch:
    """Counts and reports each step of a host between batch system and cloud.

    :param store: calls this object when a step is stored.
    :param moving: controller that moves hosts; ``None`` if no hosts move.
    :param post: sends notifications, without waiting.
    :param host: host of this process, for the notifications.
    """

    def __init__(
        self,
        store: store_module.Store,
        moving: controller.BorderController | None,
        post: Callable[[Iterable[notices.Notice]], None],
        host: str,
    ) -> None:
        self._moving = moving
        self._post = post
        self._host = host
        self._steps: collections.Counter[tuple[str, str]]
        self._steps = collections.Counter()
        store.nodes.add_listener(self._report_step)

    def border(self) -> border_observe.BorderStatus:
        """Return the state of hosts, batch system and cloud in the last
        cycle.
        """
        steps = dict(self._steps)
        try:
            looked = self._moving.last() if self._moving else None
        except exception.NotLeading:
            looked = None
        if looked is None:
            return border_observe.BorderStatus(steps)
        states = collections.Counter(
            each.state.value for each in looked.snapshot.nodes
        )
        cores = {
            (side.value, kind): amount
            for side, balance in looked.balances.items()
            for kind, amount in dataclasses.asdict(balance).items()
        }
        parts = {
            (each.group.account, side): part
            for each in looked.groups
            for side, part in (('batch', each.batch), ('cloud', each.cloud))
        }
        return border_observe.BorderStatus(
            steps,
            looked.at,
            states,
            cores,
            len(looked.faults),
            {each.group.account: each.pledge for each in looked.groups},
            parts,
        )

    def _report_step(self, node: border_module.BorderHost) -> None:
        step = node.history[-1]
        self._steps[step.event.value, step.cause.value] += 1
        self._post([border_observe.notice(node, self._host)])


class PlanWatch:
    """Counts and reports each change that this process makes of a plan.

    :param store: calls this object when a change of a plan is stored.
    :param planned: controller of migration plans; ``None`` if there are none.
    :param post: sends notifications, without waiting.
    :param host: host of this process, for notifications.
    """

    def __init__(
        self,
        store: store_module.Store,
        planned: plan_controller.PlanController | None,
        post: Callable[[Iterable[notices.Notice]], None],
        host: str,
    ) -> None:
        self._store = store
        self._planned = planned
        self._post = post
        self._host = host
        self._entered: collections.Counter[tuple[str, str]]
        self._entered = collections.Counter()
        self._moves: collections.Counter[tuple[str, str]]
        self._moves = collections.Counter()
        store.plans.add_listener(self._object_changed)

    def plans(self) -> plans_observe.PlansStatus:
        """Return the state of migration plans and of hosts in the last
        cycle.
        """
        entered, moves = dict(self._entered), dict(self._moves)
        try:
            looked = self._planned.last() if self._planned else None
            moving = sum(
                move.state is plans_model.MoveState.MOVING
                for plan in self._store.plans.open_plans()
                for move in plan.moves
            )
        except (exception.NotLeading, exception.StoreError):
            looked = None
        if looked is None:
            return plans_observe.PlansStatus(entered, moves)
        return plans_observe.PlansStatus(
            entered,
            moves,
            looked.at,
            moving,
            sum(map(host_power.is_resting, looked.services.values())),
        )

    def _object_changed(
        self,
        before: plans_model.MigrationPlan | None,
        after: plans_model.MigrationPlan,
    ) -> None:
        if before is None or before.state is not after.state:
            self._entered[after.goal.value, after.state.value] += 1
        for _, move in plans_observe.changed_moves(before, after):
            cause = move.cause.value if move.cause else ''
            self._moves[move.state.value, cause] += 1
        self._post(plans_observe.change_notices(before, after, self._host))


class RequestWatch:
    """Counts and reports each change that this process makes of a request.

    :param store: calls this object when a change of a request is stored.
    :param service: makes the changes.
    :param post: sends notifications, without waiting.
    :param host: host of this process, for notifications.
    :param audience: role of the readers of the notifications.
    """

    def __init__(
        self,
        store: store_module.Store,
        service: service_module.Service,
        post: Callable[[Iterable[notices.Notice]], None],
        host: str,
        audience: reason.Audience = reason.Audience.MEMBER,
    ) -> None:
        self._service = service
        self._post = post
        self._host = host
        self._audience = audience
        self._channels = notice_channels.channels_after_steps(
            post, host, audience
        )
        self._waited_s = 0.0
        self._entered: collections.Counter[str] = collections.Counter(
            dict.fromkeys((each.value for each in queue_observe.EVENTS), 0)
        )
        self._left: collections.Counter[str] = collections.Counter(
            dict.fromkeys((each.value for each in eviction.EvictionState), 0)
        )
        self._warnings: collections.Counter[str] = collections.Counter(
            dict.fromkeys((each.value for each in risk.RiskState), 0)
        )
        self._preempted = queue.PreemptionOutcomes()
        self._needed: dict[str, float] = {}
        store.set_listener(self._object_changed)
        store.leaves.add_listener(self._eviction_changed)
        store.risks.add_listener(self._warning_changed)

    def queue(self) -> queue.Queue:
        """Return the state of the requests in the last cycle."""
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
            unread = request.state is _S.WAITING and why is _R.UNREADABLE
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
            warned=dict(self._warnings),
            cycles=self._service.cycles,
            cycles_failed=self._service.cycles_failed,
            clocks_disagree=bool(self._service.clocks.fault),
            calibrated=last.calibrated if last else None,
            preempted=self._preempted,
            idle=self._service.chores.idling.count,
            at_risk=len(self._service.chores.warnings.told),
            failures=self._service.quarantine.failures(),
            quarantined=self._service.quarantine.counts(),
            set_aside=self._service.quarantine.entries(),
            accounts_set_aside=self._service.accounts.set_aside,
            agents_unlike=dict(self._service.charging.outliers()),
            delayed=len(last.snapshot.in_vain) if last else 0,
        )

    def _eviction_changed(self, leave: eviction.Eviction) -> None:
        self._left[leave.state.value] += 1
        if leave.request:
            self._needed.setdefault(leave.request, leave.chosen_at)
        if leave.cause in eviction.PREEMPTIONS:
            self._count_preemption_end(leave)
        self._channels.send_notice(leave)

    def _warning_changed(self, known: risk.EvictionRisk) -> None:
        self._warnings[known.state.value] += 1
        self._channels.send_warning(known)

    def _count_preemption_end(self, leave: eviction.Eviction) -> None:
        if (
            leave.outcome is None
            or leave.state is eviction.EvictionState.RETURNED
        ):
            return
        before = self._preempted
        ended = collections.Counter(before.ended)
        ended[leave.why.reason.value, leave.outcome] += 1
        self._preempted = dataclasses.replace(
            before,
            ended=ended,
            notice_s=before.notice_s + (leave.notice_s or 0.0),
            lost_vcpu_s=before.lost_vcpu_s + leave.lost_vcpu_s,
        )

    def _count_served_preemptor(
        self, request: request_model.Request, now: float
    ) -> None:
        """Count a request whose servers run, if evictions made room for it."""
        if request.state is not _S.ACTIVE and (
            request.state not in request_model.FINAL
        ):
            return
        since = self._needed.pop(request.uuid, None)
        if since is not None and request.state is _S.ACTIVE:
            before = self._preempted
            self._preempted = dataclasses.replace(
                before,
                served=before.served + 1,
                served_s=before.served_s + max(now - since, 0.0),
            )

    def _object_changed(
        self, request: request_model.Request, why: reason.Why, now: float
    ) -> None:
        self._count_served_preemptor(request, now)
        told = queue_observe.notice(
            request, why, now, self._host, self._audience
        )
        if told is None:
            return
        if request.state is _S.WAITING and request.version:
            # A request that waits again was reported when it came.
            if why.reason in reason.HOLDS or why.reason is _R.NOT_PLANNED:
                self._post([told])
            return
        self._entered[request.state.value] += 1
        if request.state is _S.STARTING:
            self._waited_s += max(now - request.asked_at, 0.0)
        self._post([told])
